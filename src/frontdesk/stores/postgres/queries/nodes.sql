-- name: node_is_gone
-- Whether nobody holds the lock that shows a node's life.
SELECT pg_try_advisory_xact_lock(hashtext(:scope), CAST(:number AS integer));

-- name: ring_others
-- A hint for the other nodes.
SELECT pg_notify(:channel, :payload);
