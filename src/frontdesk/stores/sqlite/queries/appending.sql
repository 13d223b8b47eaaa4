-- How the usual message is stored in one statement: it is put into a view, whose triggers write the rows. They are
-- made on the connection that writes, and are not in the file.

-- name: make_appending
-- The view and its triggers.
CREATE TEMP VIEW appending AS SELECT
    NULL AS place, NULL AS session_id, NULL AS session_key, NULL AS position, NULL AS now, NULL AS active_minute,
    NULL AS moves, NULL AS tells, NULL AS role, NULL AS counted, NULL AS model_turns, NULL AS open_calls,
    NULL AS platform_message_id, NULL AS source_key, NULL AS turn_id, NULL AS turn_position, NULL AS body,
    NULL AS input_tokens, NULL AS output_tokens, NULL AS cache_read_tokens, NULL AS cache_write_tokens,
    NULL AS cost_usd, NULL AS cost_status, NULL AS last_prompt_tokens;

CREATE TEMP TRIGGER appending_adds INSTEAD OF INSERT ON appending BEGIN
    UPDATE sessions SET
        updated_at = NEW.now, next_position = next_position + 1, message_count = message_count + NEW.counted,
        model_turns = model_turns + NEW.model_turns, open_calls = NEW.open_calls, redo_depth = 0,
        input_tokens = input_tokens + NEW.input_tokens, output_tokens = output_tokens + NEW.output_tokens,
        cache_read_tokens = cache_read_tokens + NEW.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + NEW.cache_write_tokens,
        estimated_cost_usd = estimated_cost_usd + NEW.cost_usd,
        cost_status = COALESCE(NEW.cost_status, cost_status),
        last_prompt_tokens = COALESCE(NEW.last_prompt_tokens, last_prompt_tokens)
    WHERE rowid = NEW.place;
    INSERT INTO messages (
        session_id, position, role, created_at, platform_message_id, source_key, turn_id, turn_position, body
    ) VALUES (
        NEW.session_id, NEW.position, NEW.role, NEW.now, NEW.platform_message_id, NEW.source_key, NEW.turn_id,
        NEW.turn_position, NEW.body
    );
END;

CREATE TEMP TRIGGER appending_moves INSTEAD OF INSERT ON appending WHEN NEW.moves BEGIN
    UPDATE sessions SET active_minute = NEW.active_minute WHERE rowid = NEW.place;
END;

CREATE TEMP TRIGGER appending_tells INSTEAD OF INSERT ON appending WHEN NEW.tells BEGIN
    INSERT INTO feed (at, kind, session_key, session_id)
    VALUES (NEW.now, 'transcript', NEW.session_key, NEW.session_id);
END;

-- name: append_message
-- A message of a session without open tool calls, unless the session has it, with what the turn used.
INSERT INTO appending
SELECT
    s.rowid, s.id, s.session_key, s.next_position, :now, :active_minute,
    s.active_minute <> :active_minute, :tells, :role, :counted, :model_turns, :open_calls,
    :platform_message_id, CASE WHEN :platform_message_id IS NOT NULL THEN COALESCE(:source_key, s.session_key) END,
    :turn_id, :turn_position, :body,
    :input_tokens, :output_tokens, :cache_read_tokens, :cache_write_tokens,
    :cost_usd, :cost_status, :last_prompt_tokens
FROM sessions s
WHERE s.id = :session_id AND s.open_calls IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM messages m
        WHERE m.session_id = :session_id AND m.turn_id = :turn_id AND m.turn_position = :turn_position
    )
    AND NOT EXISTS (
        SELECT 1 FROM messages m
        WHERE m.session_id = :session_id AND m.platform_message_id = :platform_message_id
            AND m.source_key = COALESCE(:source_key, s.session_key) AND m.hidden_by IS NULL
    )
RETURNING position;
