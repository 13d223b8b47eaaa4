-- name: feed_since
-- What changed after a place in the feed, and whose it is: by its session, else by the one its key is at.
SELECT
    {f.feed_event},
    COALESCE(
        f.owner,
        (SELECT s.owner FROM sessions s WHERE s.id = f.session_id),
        (SELECT s.owner FROM routes r JOIN sessions s ON s.id = r.session_id WHERE r.session_key = f.session_key)
    ) AS whose,
    0, number, 1
FROM feed f
WHERE number > :number AND :xid >= 0 ORDER BY number LIMIT :limit;

-- name: feed_end
-- The newest place in the feed.
SELECT 0, COALESCE(MAX(number), 0) FROM feed;

-- name: feed_begin
-- The oldest place in the feed.
SELECT 0, number FROM feed ORDER BY number LIMIT 1;
