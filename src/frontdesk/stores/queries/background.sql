-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: begin_background
-- Work of a conversation runs, or still runs.
INSERT INTO background (session_key, name, begun_at, until) VALUES (:session_key, :name, :begun_at, :until)
ON CONFLICT (session_key, name) DO UPDATE SET until = excluded.until
RETURNING begun_at /*pg , pg_current_xact_id() AS xid */;

-- name: end_background
-- It has ended.
DELETE FROM background WHERE session_key = :session_key AND name = :name
RETURNING name /*pg , pg_current_xact_id() AS xid */;

-- name: background_of
-- Whether some runs for a conversation.
SELECT 1 FROM background WHERE session_key = :session_key AND until > :now LIMIT 1;

-- name: background
-- All that runs, the latest first.
SELECT {background_task} FROM background WHERE until > :now
ORDER BY begun_at DESC, session_key, name LIMIT :limit;

-- name: prune_background
-- Forget what was not said again in time.
DELETE FROM background WHERE until <= :now;
