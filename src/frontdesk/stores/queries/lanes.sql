-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: join_node
-- A node takes part.
INSERT INTO nodes (name, started_at) VALUES (:name, :now)
RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: announce_stop
-- A node was told to stop.
UPDATE nodes SET stopped_at = COALESCE(stopped_at, :now) WHERE number = :node
RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: stop_of
-- When a node was told to stop.
SELECT stopped_at FROM nodes WHERE number = :node;

-- name: line_up
-- Something new waits in a lane.
INSERT INTO lanes (name, kind, due_at, party) VALUES (:lane, :kind, :due_at, :party)
ON CONFLICT (name) DO UPDATE SET
    party = excluded.party, due_at = CASE WHEN lanes.holder IS NULL THEN COALESCE(lanes.due_at, excluded.due_at) END;

-- name: hold_lane
-- Whether the lease still holds; it does until the transaction ends.
SELECT 1 /*pg , pg_current_xact_id() AS xid */ FROM lanes
WHERE name = :lane AND holder = :node AND token = :token /*pg FOR UPDATE */;

-- name: lock_lane
-- Who holds a lane; nobody changes that until the transaction ends.
SELECT holder, token /*pg , pg_current_xact_id() AS xid */ FROM lanes WHERE name = :lane /*pg FOR UPDATE */;

-- name: lane_holder
-- A lane that is there, and who holds it.
SELECT holder FROM lanes WHERE name = :lane;

-- name: free_turn_lane
-- Let go of a lane of turns; when the first that waits in it is due.
UPDATE lanes SET holder = NULL, leased_until = NULL, due_at = (
    SELECT t.due_at FROM turns t WHERE t.lane = :lane AND t.state = 'queued' ORDER BY t.number LIMIT 1
) WHERE name = :lane RETURNING due_at /*pg , pg_current_xact_id() AS xid */;

-- name: free_chat_lane
-- Let go of a lane of deliveries; when the first that waits in it is due.
UPDATE lanes SET holder = NULL, leased_until = NULL, due_at = (
    SELECT d.due_at FROM deliveries d WHERE d.lane = :lane AND d.state = 'pending' ORDER BY d.number LIMIT 1
) WHERE name = :lane RETURNING due_at /*pg , pg_current_xact_id() AS xid */;

-- name: take_lane
-- Take a lane at once in which nothing waits and nobody works.
INSERT INTO lanes (name, kind, holder, token, leased_until)
VALUES (:lane, :kind, :node, 1, micros() + :lease_micros)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder, token = lanes.token + 1, leased_until = excluded.leased_until
WHERE lanes.holder IS NULL AND lanes.due_at IS NULL
RETURNING token /*pg , pg_current_xact_id() AS xid */;

-- name: take_turn_lane
-- The same for somebody's turn, while nothing of its kind waits to be begun before it in any lane.
INSERT INTO lanes (name, kind, party, holder, token, leased_until)
SELECT
    CAST(:lane AS text), CAST(:kind AS text), CAST(:party AS text), CAST(:node AS bigint), 1,
    micros() + CAST(:lease_micros AS bigint)
WHERE NOT EXISTS (SELECT 1 FROM lanes w WHERE w.kind = :kind AND w.due_at <= :now)
ON CONFLICT (name) DO UPDATE SET
    party = excluded.party, holder = excluded.holder, token = lanes.token + 1, leased_until = excluded.leased_until
WHERE lanes.holder IS NULL AND lanes.due_at IS NULL
RETURNING token /*pg , pg_current_xact_id() AS xid */;

-- name: fence_lane
-- Let go of a lane for somebody else: whatever the holder still wants to write is refused.
UPDATE lanes SET holder = NULL, leased_until = NULL, due_at = :due_at, token = token + 1 WHERE name = :lane;

-- name: move_due
-- A free lane's first item is due at another time.
UPDATE lanes SET due_at = :due_at WHERE name = :lane AND holder IS NULL;

-- name: hasten_lanes
-- What was due later is due now.
UPDATE lanes SET due_at = :now WHERE kind = :kind AND due_at > :now /*pg RETURNING 1, pg_current_xact_id() AS xid */;

-- name: renew_lease
-- Its holder is at it.
UPDATE lanes SET leased_until = micros() + :lease_micros
WHERE name = :lane AND holder = :node AND token = :token RETURNING 1 /*pg , pg_current_xact_id() AS xid */;

-- name: holders
-- The nodes that hold lanes, and whether a lease has run out.
SELECT holder, MIN(leased_until) < micros() FROM lanes WHERE holder IS NOT NULL GROUP BY holder;

-- name: held_lanes
-- What a node holds, and under which tokens.
SELECT name, token FROM lanes WHERE holder = :node;

-- name: lanes_of
-- What a node holds, and since when each lease has run out.
SELECT name, kind, micros() - leased_until /*pg , pg_current_xact_id() AS xid */ FROM lanes WHERE holder = :node /*pg FOR UPDATE */;

-- name: overdue_lanes
-- What a node holds although its lease has run out, and since when.
SELECT name, kind, micros() - leased_until /*pg , pg_current_xact_id() AS xid */ FROM lanes
WHERE holder = :node AND leased_until < micros() /*pg FOR UPDATE */;

-- name: next_due
-- When the next lane of a kind has something due.
SELECT MIN(due_at) FROM lanes WHERE kind = :kind AND due_at IS NOT NULL;

-- name: probe
-- Whether something can be written.
INSERT INTO lanes (name, kind) VALUES (:lane, 'probe') RETURNING 1 /*pg , pg_current_xact_id() AS xid */;

-- name: unprobe
-- Take back what was written to know whether it can be.
DELETE FROM lanes WHERE name = :lane RETURNING 1;
