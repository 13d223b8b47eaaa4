-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: queued_turns
-- How many turns wait, in how many lanes, and since when, in each kind of lane.
SELECT CASE WHEN t.lane LIKE 'control:%' THEN 'control' ELSE 'turn' END AS of_kind, COUNT(*), COUNT(DISTINCT t.lane),
    MIN(t.received_at)
FROM turns t WHERE t.state = 'queued' GROUP BY of_kind ORDER BY of_kind;

-- name: queued_deliveries
-- The same of deliveries.
SELECT CASE WHEN d.lane LIKE 'box:%' THEN 'box' ELSE 'chat' END AS of_kind, COUNT(*), COUNT(DISTINCT d.lane),
    MIN(d.created_at)
FROM deliveries d WHERE d.state = 'pending' GROUP BY of_kind ORDER BY of_kind;

-- name: deepest_lanes
-- The lanes in which most turns wait.
SELECT t.lane, COUNT(*) AS items, MIN(t.received_at) FROM turns t
WHERE t.state = 'queued' GROUP BY t.lane ORDER BY items DESC, t.lane LIMIT :limit;

-- name: leases
-- The lanes that somebody works on; those whose leases end first.
SELECT l.name, l.kind, l.holder, n.name, l.leased_until FROM lanes l LEFT JOIN nodes n ON n.number = l.holder
WHERE l.holder IS NOT NULL ORDER BY l.leased_until, l.name LIMIT :limit;

-- name: nodes_seen
-- The newest nodes, and what they hold.
SELECT n.number, n.name, n.started_at, n.stopped_at, (SELECT COUNT(*) FROM lanes l WHERE l.holder = n.number),
    (SELECT MAX(l.leased_until) FROM lanes l WHERE l.holder = n.number)
FROM nodes n ORDER BY n.number DESC LIMIT :limit;

-- name: cursors_moved
-- When each account was last read on.
SELECT platform, account, MAX(moved_at) FROM cursors WHERE moved_at IS NOT NULL GROUP BY platform, account;

-- name: turns_heard
-- When each account last brought a turn, by the newest turns.
SELECT t.platform, t.account, MAX(t.received_at) FROM turns t
WHERE t.number > (SELECT MAX(n.number) FROM turns n) - :most AND t.kind NOT IN ('hook', 'expiry')
GROUP BY t.platform, t.account;

-- name: oldest_change
-- When the oldest change happened that the feed tells of.
SELECT f.at FROM feed f ORDER BY f.number LIMIT 1;
