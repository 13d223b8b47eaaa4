-- name: store_bytes
-- How large the tables and their indexes are.
SELECT CAST(COALESCE(SUM(pg_total_relation_size(c.oid)), 0) AS bigint) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace);

-- name: living_nodes
-- The nodes that show that they live, by the locks that they hold.
SELECT CAST(CAST(l.objid AS bigint) AS integer) FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND CAST(l.classid AS bigint) = (CAST(hashtext(:scope) AS bigint) & 4294967295);
