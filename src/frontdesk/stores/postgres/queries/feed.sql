-- name: feed_since
-- What changed after a place in the feed, and whether no transaction that began earlier can still add to it.
SELECT
    {feed_event}, xid::text::bigint AS transaction_number, number,
    xid < pg_snapshot_xmin(pg_current_snapshot()) AS is_settled
FROM feed
WHERE (xid, number) > (CAST(:xid AS bigint)::text::xid8, CAST(:number AS bigint))
ORDER BY xid, number LIMIT :limit;

-- name: feed_end
-- The newest place in the feed that nothing can come before any more.
SELECT (pg_snapshot_xmin(pg_current_snapshot()))::text::bigint, 0::bigint;
