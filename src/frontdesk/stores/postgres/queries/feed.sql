-- name: feed_since
-- What changed after a place in the feed, and whose it is: by its session, else by the one its key is at; and
-- whether no transaction that began earlier can still add to it.
SELECT
    {f.feed_event},
    COALESCE(
        f.owner,
        (SELECT s.owner FROM sessions s WHERE s.id = f.session_id),
        (SELECT s.owner FROM routes r JOIN sessions s ON s.id = r.session_id WHERE r.session_key = f.session_key)
    ) AS whose,
    xid::text::bigint AS transaction_number, number,
    xid < pg_snapshot_xmin(pg_current_snapshot()) AS is_settled
FROM feed f
WHERE (xid, number) > (CAST(:xid AS bigint)::text::xid8, CAST(:number AS bigint))
ORDER BY xid, number LIMIT :limit;

-- name: feed_end
-- The newest place in the feed that nothing can come before any more.
SELECT (pg_snapshot_xmin(pg_current_snapshot()))::text::bigint, 0::bigint;

-- name: feed_begin
-- The oldest place in the feed.
SELECT xid::text::bigint AS transaction_number, number FROM feed ORDER BY xid, number LIMIT 1;
