-- Which lanes are taken.

-- name: claim_lanes
-- Take free lanes with something due, the longest waiting first; none of parties that have enough, and of no party more.
WITH oldest AS MATERIALIZED (
    SELECT name, party, due_at FROM lanes
    WHERE kind = :kind AND due_at <= :now AND NOT CAST(:full AS jsonb) ? party
    ORDER BY due_at LIMIT :limit FOR UPDATE SKIP LOCKED
), numbered AS (
    SELECT name, ROW_NUMBER() OVER (PARTITION BY party ORDER BY due_at) + COALESCE(
        CAST(CAST(:taken AS jsonb) ->> party AS bigint), 0
    ) AS place FROM oldest
)
UPDATE lanes SET holder = :node, token = token + 1, leased_until = micros() + :lease_micros, due_at = NULL
WHERE name IN (SELECT name FROM numbered WHERE place <= :share)
RETURNING name, token, party, pg_current_xact_id() AS xid;
