-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: audit_rows
-- The log from a row on, in order.
SELECT {audit_row} FROM audit WHERE number > :after ORDER BY number LIMIT :limit;

-- name: audit_newest
-- The log, newest first.
SELECT {audit_row} FROM audit ORDER BY number DESC LIMIT :limit;

-- name: audit_before
-- The log before a row, newest first.
SELECT {audit_row} FROM audit WHERE number < :before ORDER BY number DESC LIMIT :limit;
