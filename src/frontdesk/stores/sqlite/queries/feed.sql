-- name: feed_since
-- What changed after a place in the feed.
SELECT {feed_event}, 0, number, 1 FROM feed
WHERE number > :number AND :xid >= 0 ORDER BY number LIMIT :limit;

-- name: feed_end
-- The newest place in the feed.
SELECT 0, COALESCE(MAX(number), 0) FROM feed;
