-- name: append_audit
-- The next row of the log, hashed with the hash of the one before it.
INSERT INTO audit (number, body, previous, hash)
SELECT number, :body, previous, sha256(
    convert_to(number || chr(10) || encode(previous, 'hex') || chr(10), 'UTF8') || CAST(:body AS bytea)
) FROM (
    SELECT COALESCE(last.number, 0) + 1 AS number, COALESCE(last.hash, :genesis) AS previous
    FROM (SELECT 1 AS one) AS always
    LEFT JOIN (SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1) AS last ON TRUE
) AS next
RETURNING pg_current_xact_id() AS xid;
