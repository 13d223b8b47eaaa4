-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: transcript_head
-- Where a transcript goes on, to be changed in this transaction.
SELECT next_position, open_calls, session_key, revision, redo_depth, counted_from, active_minute
    /*pg , pg_current_xact_id() AS xid */
FROM sessions WHERE id = :session_id /*pg FOR UPDATE */;

-- name: advance_transcript
-- Room for new rows, counted; what was undone can no longer be redone.
UPDATE sessions SET
    updated_at = :now, next_position = next_position + :rows, message_count = message_count + :counted,
    model_turns = model_turns + :model_turns, open_calls = :open_calls, redo_depth = 0
WHERE id = :session_id;

-- name: advance_transcript_with_usage
-- The same, with what the turn used.
UPDATE sessions SET
    updated_at = :now, next_position = next_position + :rows, message_count = message_count + :counted,
    model_turns = model_turns + :model_turns, open_calls = :open_calls, redo_depth = 0,
    input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
    cache_read_tokens = cache_read_tokens + :cache_read_tokens,
    cache_write_tokens = cache_write_tokens + :cache_write_tokens,
    estimated_cost_usd = estimated_cost_usd + :cost_usd,
    cost_status = COALESCE(:cost_status, cost_status),
    last_prompt_tokens = COALESCE(:last_prompt_tokens, last_prompt_tokens)
WHERE id = :session_id;

-- name: insert_message
-- A new row.
INSERT INTO messages (
    session_id, position, role, created_at, platform_message_id, source_key, turn_id, turn_position, body
) VALUES (
    :session_id, :position, :role, :created_at, :platform_message_id, :source_key, :turn_id, :turn_position,
    :body
);

-- name: has_platform_id
-- Whether a live row of the session has this platform message id.
SELECT 1 FROM messages
WHERE session_id = :session_id AND platform_message_id = :platform_message_id AND source_key = :source_key
    AND hidden_by IS NULL;

-- name: has_any_platform_id
-- The same, whatever chat the message came from.
SELECT 1 FROM messages
WHERE session_id = :session_id AND platform_message_id = :platform_message_id AND hidden_by IS NULL LIMIT 1;

-- name: live_sources
-- The live rows with a platform message id, and the conversations that these came from.
SELECT platform_message_id, body, source_key FROM messages
WHERE session_id = :session_id AND platform_message_id IS NOT NULL AND hidden_by IS NULL ORDER BY position;

-- name: has_turn_position
-- Whether the session has this row of this turn.
SELECT 1 FROM messages
WHERE session_id = :session_id AND turn_id = :turn_id AND turn_position = :turn_position;

-- name: live_rows
-- The transcript after a place, with when each message was stored.
SELECT position, body, created_at FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL AND position > :after ORDER BY position LIMIT :limit;

-- name: live_sizes
-- How many bytes the messages of the transcript after a place have.
SELECT length(body) FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL AND position > :after ORDER BY position LIMIT :limit;

-- name: newest_live_sizes
-- Where the newest messages of the transcript stand, newest first, and how many bytes they have.
SELECT position, length(body) FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL ORDER BY position DESC LIMIT :limit;

-- name: first_live_bodies
-- The beginning of the transcript.
SELECT body FROM messages WHERE session_id = :session_id AND hidden_by IS NULL ORDER BY position LIMIT :limit;

-- name: live_bodies_until
-- The transcript after a place, as far as a turn has written it.
SELECT position, body FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL AND position > :after AND position <= (
    SELECT MAX(t.position) FROM messages t
    WHERE t.session_id = :session_id AND t.turn_id = :turn_id AND t.hidden_by IS NULL
) ORDER BY position LIMIT :limit;

-- name: hidden_bodies
-- What a revision took out of the transcript, after a place.
SELECT position, body FROM messages
WHERE session_id = :session_id AND hidden_by = :revision AND position > :after ORDER BY position LIMIT :limit;

-- name: live_tail
-- The newest rows, newest first.
SELECT position, role, body FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL AND position < :before
ORDER BY position DESC LIMIT :limit;

-- name: newest_rows
-- The same, up to the one with which they are as large as there is room.
SELECT position, role, body FROM (
    SELECT position, role, body, SUM(LENGTH(body)) OVER (ORDER BY position DESC) AS size FROM (
        SELECT position, role, body FROM messages
        WHERE session_id = :session_id AND hidden_by IS NULL AND position < :before
        ORDER BY position DESC LIMIT :limit
    ) AS newest
) AS sized WHERE size - LENGTH(body) < :room ORDER BY position DESC;

-- name: drop_overheard_rows
-- What was overheard so long ago that it is not kept.
DELETE FROM messages
WHERE session_id = :session_id AND hidden_by IS NULL AND position >= :first AND position <= :last RETURNING position;

-- name: counted_from
-- From where on rows count against the limit.
SELECT counted_from FROM sessions WHERE id = :session_id;

-- name: count_dropped
-- Rows are gone that had counted.
UPDATE sessions SET message_count = message_count - :dropped WHERE id = :session_id;

-- name: hide_from
-- Take rows out of the transcript.
UPDATE messages SET hidden_by = :revision
WHERE session_id = :session_id AND position >= :position AND hidden_by IS NULL RETURNING role;

-- name: unhide
-- Bring rows back.
UPDATE messages SET hidden_by = NULL WHERE session_id = :session_id AND hidden_by = :revision
RETURNING position, role, body;

-- name: count_live
-- How many messages there are from a place on.
SELECT COUNT(*) FROM messages
WHERE session_id = :session_id AND position >= :counted_from AND hidden_by IS NULL AND role <> 'session_meta';

-- name: revise_transcript
-- The transcript's head after a rewind, redo or rewrite.
UPDATE sessions SET
    next_position = :next_position, message_count = :message_count, counted_from = :counted_from,
    revision = :revision,
    redo_depth = :redo_depth, open_calls = :open_calls, updated_at = :now, active_minute = :active_minute
WHERE id = :session_id;

-- name: insert_revision
-- Remember that rows were taken out.
INSERT INTO revisions (session_id, revision, kind, created_at) VALUES (:session_id, :revision, :kind, :now);

-- name: delete_revision
-- The rows are back.
DELETE FROM revisions WHERE session_id = :session_id AND revision = :revision;

-- name: revisions
-- What was taken out of a transcript, and when.
SELECT r.revision, r.kind, r.created_at,
    (SELECT COUNT(*) FROM messages m WHERE m.session_id = r.session_id AND m.hidden_by = r.revision)
FROM revisions r WHERE r.session_id = :session_id ORDER BY r.revision;

-- name: copy_transcript
-- The live rows of one session in another, under their old positions.
INSERT INTO messages (
    session_id, position, role, created_at, platform_message_id, source_key, turn_id, turn_position, body
) SELECT
    CAST(:target AS text), position, role, created_at, platform_message_id, source_key, turn_id, turn_position,
    body
FROM messages WHERE session_id = :session_id AND hidden_by IS NULL ORDER BY position;

-- name: compressed_parent
-- The session that was compressed into this one.
SELECT parent_id FROM sessions
WHERE id = :session_id AND relation = 'compressed' AND parent_id IS NOT NULL;

-- name: copy_turns
-- A branch had the model turns of its parent.
UPDATE sessions SET model_turns = (SELECT p.model_turns FROM sessions p WHERE p.id = :session_id)
WHERE id = :target;
