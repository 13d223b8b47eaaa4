-- How the usual message is stored in one statement: it is put into a view, whose trigger writes the rows. Both are made
-- on the connection that writes, and are not in the file.

-- name: make_appending
-- The view and its trigger.
CREATE TEMP VIEW appending AS SELECT
    NULL AS session_id, NULL AS now, NULL AS active_minute, NULL AS tells, NULL AS role, NULL AS counted,
    NULL AS model_turns, NULL AS open_calls, NULL AS platform_message_id, NULL AS source_key, NULL AS turn_id,
    NULL AS turn_position, NULL AS body, NULL AS input_tokens, NULL AS output_tokens, NULL AS cache_read_tokens,
    NULL AS cache_write_tokens, NULL AS cost_usd, NULL AS cost_status, NULL AS last_prompt_tokens;

CREATE TEMP TRIGGER appending_adds INSTEAD OF INSERT ON appending BEGIN
    -- A session that is not there, or waits for the results of tool calls, has no place for it; one that has it already
    -- knows it by its marks.
    INSERT OR IGNORE INTO messages (
        session_id, position, role, created_at, platform_message_id, source_key, turn_id, turn_position, body
    ) VALUES (
        NEW.session_id, (SELECT next_position FROM sessions WHERE id = NEW.session_id AND open_calls IS NULL),
        NEW.role, NEW.now, NEW.platform_message_id,
        CASE
            WHEN NEW.platform_message_id IS NOT NULL
                THEN COALESCE(NEW.source_key, (SELECT session_key FROM sessions WHERE id = NEW.session_id))
        END,
        NEW.turn_id, NEW.turn_position, NEW.body
    );
    UPDATE sessions SET
        updated_at = NEW.now, next_position = next_position + 1, message_count = message_count + NEW.counted,
        model_turns = model_turns + NEW.model_turns, open_calls = NEW.open_calls, redo_depth = 0,
        input_tokens = input_tokens + NEW.input_tokens, output_tokens = output_tokens + NEW.output_tokens,
        cache_read_tokens = cache_read_tokens + NEW.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + NEW.cache_write_tokens,
        estimated_cost_usd = estimated_cost_usd + NEW.cost_usd,
        cost_status = COALESCE(NEW.cost_status, cost_status),
        last_prompt_tokens = COALESCE(NEW.last_prompt_tokens, last_prompt_tokens)
    WHERE changes() = 1 AND id = NEW.session_id;
    INSERT INTO feed (at, kind, session_key, session_id)
    SELECT NEW.now, 'transcript', session_key, id FROM sessions
    WHERE changes() = 1 AND NEW.tells AND id = NEW.session_id;
    UPDATE sessions SET active_minute = NEW.active_minute
    WHERE id = NEW.session_id AND active_minute <> NEW.active_minute AND updated_at = NEW.now;
END;

-- name: append_message
-- A message of a session without open tool calls, unless the session has it, with what the turn used.
INSERT INTO appending VALUES (
    :session_id, :now, :active_minute, :tells, :role, :counted, :model_turns, :open_calls, :platform_message_id,
    :source_key, :turn_id, :turn_position, :body, :input_tokens, :output_tokens, :cache_read_tokens,
    :cache_write_tokens, :cost_usd, :cost_status, :last_prompt_tokens
) RETURNING 1;
