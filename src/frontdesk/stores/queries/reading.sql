-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- part: row
-- A row of a transcript, and what took it out of it.
m.position, m.role, m.created_at, m.turn_id, m.hidden_by, r.kind, m.body

-- part: rows
-- Where rows stand.
FROM messages m LEFT JOIN revisions r ON r.session_id = m.session_id AND r.revision = m.hidden_by

-- name: sizes_before
-- How many bytes the rows of a transcript before a position have, newest first.
SELECT length(body) FROM messages WHERE session_id = :session_id AND position < :position
ORDER BY position DESC LIMIT :limit;

-- name: sizes_after
-- How many bytes the rows of a transcript after a position have, oldest first.
SELECT length(body) FROM messages WHERE session_id = :session_id AND position > :position
ORDER BY position LIMIT :limit;

-- name: size_before
-- How many bytes they have together.
SELECT COALESCE(SUM(f.size), 0) FROM (
    SELECT length(body) AS size FROM messages WHERE session_id = :session_id AND position < :position
    ORDER BY position DESC LIMIT :limit
) f;

-- name: size_after
-- How many bytes they have together.
SELECT COALESCE(SUM(f.size), 0) FROM (
    SELECT length(body) AS size FROM messages WHERE session_id = :session_id AND position > :position
    ORDER BY position LIMIT :limit
) f;

-- name: rows_before
-- The rows of a transcript before a position, newest first, undone ones among them.
SELECT {row} {rows} WHERE m.session_id = :session_id AND m.position < :position
ORDER BY m.position DESC LIMIT :limit;

-- name: rows_after
-- The rows of a transcript after a position, oldest first.
SELECT {row} {rows} WHERE m.session_id = :session_id AND m.position > :position
ORDER BY m.position LIMIT :limit;

-- name: body_of_message
-- A message by the number that it has among all.
SELECT body FROM messages WHERE seq = :seq;
