-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- part: row
-- A row of a transcript, and what took it out of it.
m.position, m.role, m.created_at, m.turn_id, m.hidden_by, r.kind, m.body

-- part: rows
-- Where rows stand.
FROM messages m LEFT JOIN revisions r ON r.session_id = m.session_id AND r.revision = m.hidden_by

-- name: rows_before
-- The rows of a transcript before a position, newest first, undone ones among them.
SELECT {row} {rows} WHERE m.session_id = :session_id AND m.position < :position
ORDER BY m.position DESC LIMIT :limit;

-- name: rows_after
-- The rows of a transcript after a position, oldest first.
SELECT {row} {rows} WHERE m.session_id = :session_id AND m.position > :position
ORDER BY m.position LIMIT :limit;
