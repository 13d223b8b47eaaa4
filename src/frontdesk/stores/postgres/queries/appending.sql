-- name: append_message
-- A message of a session without open tool calls, unless the session has it, with what the turn used. Whoever waits
-- for the session's row may not see here what was stored meanwhile: then the row's own marks refuse it, and the
-- work is run again.
WITH advanced AS (
    UPDATE sessions s SET
        updated_at = :now, active_minute = :active_minute, next_position = next_position + 1,
        message_count = message_count + :counted, model_turns = model_turns + :model_turns,
        open_calls = :open_calls, redo_depth = 0,
        input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
        cache_read_tokens = cache_read_tokens + :cache_read_tokens,
        cache_write_tokens = cache_write_tokens + :cache_write_tokens,
        estimated_cost_usd = estimated_cost_usd + :cost_usd,
        cost_status = COALESCE(:cost_status, cost_status),
        last_prompt_tokens = COALESCE(:last_prompt_tokens, last_prompt_tokens)
    WHERE s.id = :session_id AND s.open_calls IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM messages m
            WHERE m.session_id = :session_id AND m.turn_id = CAST(:turn_id AS text)
                AND m.turn_position = CAST(:turn_position AS bigint)
        )
        AND NOT EXISTS (
            SELECT 1 FROM messages m
            WHERE m.session_id = :session_id AND m.platform_message_id = CAST(:platform_message_id AS text)
                AND m.source_key = COALESCE(CAST(:source_key AS text), s.session_key) AND m.hidden_by IS NULL
        )
    RETURNING id, session_key, next_position - 1 AS position
), told AS (
    INSERT INTO feed (at, kind, session_key, session_id)
    SELECT :now, 'transcript', session_key, id FROM advanced WHERE CAST(:tells AS bigint) = 1
), added AS (
    INSERT INTO messages (
        session_id, position, role, created_at, platform_message_id, source_key, turn_id, turn_position, body,
        found_by
    )
    SELECT
        id, position, CAST(:role AS text), CAST(:now AS bigint), CAST(:platform_message_id AS text),
        CASE
            WHEN CAST(:platform_message_id AS text) IS NOT NULL
                THEN COALESCE(CAST(:source_key AS text), session_key)
        END,
        CAST(:turn_id AS text), CAST(:turn_position AS bigint), CAST(:body AS bytea),
        CAST(:found_by AS bigint)
    FROM advanced
    RETURNING position
)
SELECT position, pg_current_xact_id() AS xid FROM added;

-- name: found_message
-- Whether a message was stored under the number by which its writer finds it again.
SELECT 1 FROM messages WHERE session_id = :session_id AND found_by = CAST(:found_by AS bigint);
