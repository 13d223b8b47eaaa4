-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: unnamed_sessions
-- Sessions whose names are not looked up yet, or have changed since; the newest first.
SELECT id, owner, title, details FROM sessions WHERE named = 0 ORDER BY id DESC LIMIT :limit
/*pg FOR NO KEY UPDATE SKIP LOCKED */;

-- name: any_unnamed
-- Whether there are such.
SELECT 1 FROM sessions WHERE named = 0 LIMIT 1;
