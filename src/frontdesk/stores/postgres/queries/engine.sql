-- What the engine itself asks.

-- name: server
-- Whether the server can hold the store.
SELECT current_setting('server_version_num')::integer AS version, current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only;

-- name: lock_schema
-- One node at a time brings the schema up to date; the others wait.
SELECT pg_advisory_xact_lock(hashtextextended('frontdesk schema ' || :schema, 0));

-- name: has_schema
-- Whether the schema exists.
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = :schema);

-- name: tables
-- The tables in the schema, whoever made them.
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'f');

-- name: meta
-- Whose tables these are, and which version.
SELECT application, version FROM meta;

-- name: set_version
-- The schema has come to a version.
UPDATE meta SET version = :version;

-- name: life
-- The life of the server, and which process of it we talk to; none after a crash, until a node has recorded it.
SELECT token, pid, backend_start FROM life JOIN lives USING (token), pg_stat_activity WHERE pid = pg_backend_pid();

-- name: recovered_to
-- The first transaction number that recovery after the crash did not find; null when it is no longer to be had.
SELECT CASE
    WHEN checkpoint_lsn = redo_lsn
        AND timeline_id = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
    THEN split_part(next_xid, ':', 1)::bigint * 4294967296 + split_part(next_xid, ':', 2)::bigint
    END
FROM pg_control_checkpoint();

-- name: begin_life
-- Record a new life of the server, unless another node has.
WITH begun AS (INSERT INTO life (one) VALUES (1) ON CONFLICT (one) DO NOTHING RETURNING token)
INSERT INTO lives (token, recovered_to) SELECT token, CAST(:recovered_to AS bigint) FROM begun;

-- name: assigned
-- The number of this transaction; null when it has written nothing.
SELECT pg_current_xact_id_if_assigned();

-- name: end_stalled
-- End the connections of ours whose client stands still between the parts of a request: the server itself waits for
-- the rest of it for ever, and keeps the locks.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'frontdesk' AND datname = current_database() AND usename = current_user
    AND state = 'active' AND wait_event = 'ClientRead'
    AND state_change < clock_timestamp() - CAST(:milliseconds AS integer) * interval '1 millisecond';

-- name: end_waiting
-- Whether a process of the server is still there. One that waits for more from us is ended: nothing more will come, or
-- what was lost on the way.
SELECT CASE WHEN wait_event = 'ClientRead' THEN pg_terminate_backend(pid) END FROM pg_stat_activity
WHERE pid = CAST(:pid AS integer) AND backend_start = CAST(:started AS timestamptz);

-- name: outcome
-- What became of a transaction of a life: after a crash, numbers that recovery did not find may be given again.
SELECT CASE
    WHEN mine.number IS NULL OR :xid >= later.recovered_to THEN 'aborted'
    WHEN later.unsure AND pg_xact_status(:xid) = 'committed' THEN 'forgotten'
    ELSE COALESCE(pg_xact_status(:xid), 'forgotten')
    END
FROM (SELECT 1) AS always
LEFT JOIN lives mine ON mine.token = :life
LEFT JOIN LATERAL (
    SELECT MIN(recovered_to)::text::xid8 AS recovered_to, BOOL_OR(recovered_to IS NULL) AS unsure
    FROM lives WHERE number > mine.number
) AS later ON true;
