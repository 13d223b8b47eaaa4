-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: list_all
-- Everybody's sessions by latest activity; with `titled` those that have a title. Every minute is later than
-- the one given, but naming one leads SQLite to the index.
SELECT {s.session} FROM sessions s
WHERE s.active_minute > -100000000000 AND (CAST(:titled AS bigint) = 0 OR s.title IS NOT NULL)
ORDER BY s.active_minute DESC, s.updated_at DESC, s.id DESC LIMIT :limit;
