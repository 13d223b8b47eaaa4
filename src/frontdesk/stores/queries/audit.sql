-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: append_audit
-- The next row of the log. Every change of a confirmation writes one, so that it tells the number for all.
INSERT INTO audit (number, body, previous, hash) VALUES (:number, :body, :previous, :hash)
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: audit_rows
-- The log from a row on, in order.
SELECT {audit_row} FROM audit WHERE number > :after ORDER BY number LIMIT :limit;

-- name: audit_last
-- The newest row, behind which another is written.
SELECT {audit_row} /*pg , pg_current_xact_id() AS xid */ FROM audit ORDER BY number DESC LIMIT 1;

-- name: audit_newest
-- The log, newest first.
SELECT {audit_row} FROM audit ORDER BY number DESC LIMIT :limit;

-- name: audit_before
-- The log before a row, newest first.
SELECT {audit_row} FROM audit WHERE number < :before ORDER BY number DESC LIMIT :limit;
