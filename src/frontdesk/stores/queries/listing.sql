-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: list_all
-- Everybody's sessions by latest activity; with `titled` those that have a title.
SELECT s.* FROM sessions s WHERE (CAST(:titled AS bigint) = 0 OR s.title IS NOT NULL)
ORDER BY s.updated_at DESC, s.id DESC LIMIT :limit;
