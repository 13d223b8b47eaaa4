-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: lock_key
-- Hold back every other decision about this key until the transaction ends (SQLite has one writer anyway).
/*pg SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(:key, 0)) */;

-- name: busy_key
-- Whether somebody else decides about this key; if not, nobody else does until the transaction ends.
/*pg SELECT 1 WHERE NOT pg_try_advisory_xact_lock(hashtextextended(:key, 0)) */;

-- name: current_session
-- The session a key points to.
SELECT {s.session} FROM sessions s WHERE s.id = (SELECT session_id FROM routes WHERE session_key = :key);

-- name: current_session_locked
-- The same, to be changed in this transaction.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */
FROM sessions s WHERE s.id = (SELECT session_id FROM routes WHERE session_key = :key) /*pg FOR UPDATE OF s */;

-- name: current_session_free
-- The same, unless somebody else is about to change it.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */
FROM sessions s WHERE s.id = (SELECT session_id FROM routes WHERE session_key = :key)
/*pg FOR UPDATE OF s SKIP LOCKED */;

-- name: session
-- A session by its id.
SELECT {s.session} FROM sessions s WHERE s.id = :session_id;

-- name: session_locked
-- The same, to be changed in this transaction.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */
FROM sessions s WHERE s.id = :session_id /*pg FOR UPDATE OF s */;

-- name: continuation
-- The session that a compressed one goes on in.
SELECT {s.session} FROM sessions s WHERE s.parent_id = :session_id AND s.relation = 'compressed'
ORDER BY s.created_at DESC, s.id DESC LIMIT 1;

-- name: newest_of_peer
-- The newest session of a peer that may be taken up again and is nobody's current one.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */ FROM sessions s
WHERE s.session_key = :key AND s.peer = :peer AND (s.ended_at IS NULL OR s.end_reason = 'closed')
    AND NOT EXISTS (SELECT 1 FROM routes r WHERE r.session_id = s.id)
ORDER BY s.updated_at DESC, s.id DESC LIMIT 1 /*pg FOR UPDATE OF s */;

-- name: route_of
-- The key that a session is current for.
SELECT session_key FROM routes WHERE session_id = :session_id;

-- name: routed
-- The session that a key is at.
SELECT session_id FROM routes WHERE session_key = :key;

-- name: insert_session
-- A new session, unless the id is taken.
INSERT INTO sessions {new_session}
ON CONFLICT (id) DO NOTHING RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: update_session
-- Write the facts that decisions change. A platform that nobody registered stays as it is.
UPDATE sessions SET
    platform = COALESCE(:platform, platform), named = CASE WHEN details = :details THEN named ELSE 0 END,
    {changed_session}
WHERE id = :id;

-- name: update_session_afresh
-- The same, and count its messages from here on only.
UPDATE sessions SET
    platform = COALESCE(:platform, platform), {changed_session}, message_count = 0, counted_from = next_position
WHERE id = :id RETURNING counted_from;

-- name: touch_session
-- The session was active just now.
UPDATE sessions SET updated_at = :now WHERE id = :session_id
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: move_forward
-- Find the session under the minute of its latest activity.
UPDATE sessions SET active_minute = :active_minute WHERE id = :session_id;

-- name: end_session
-- End a session that is open.
UPDATE sessions SET ended_at = :now, end_reason = :reason
WHERE id = :session_id AND ended_at IS NULL RETURNING id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: forget_session
-- End a session for good, whether or not it had ended.
UPDATE sessions SET ended_at = COALESCE(ended_at, :now), end_reason = :reason
WHERE id = :session_id AND COALESCE(end_reason, '') <> :reason
RETURNING id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: finalize_session
-- The end of a session has been dealt with.
UPDATE sessions SET expiry_finalized = 1 WHERE id = :session_id AND expiry_finalized = 0
RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: point_route
-- Make a session the current one of a key.
INSERT INTO routes (session_key, session_id) VALUES (:key, :session_id)
ON CONFLICT (session_key) DO UPDATE SET session_id = excluded.session_id;

-- name: drop_route_to
-- A session is nobody's current one any more.
DELETE FROM routes WHERE session_id = :session_id;

-- name: add_usage
-- Add what a turn used.
UPDATE sessions SET
    updated_at = :now, active_minute = :active_minute,
    input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
    cache_read_tokens = cache_read_tokens + :cache_read_tokens,
    cache_write_tokens = cache_write_tokens + :cache_write_tokens,
    estimated_cost_usd = estimated_cost_usd + :cost_usd,
    cost_status = COALESCE(:cost_status, cost_status),
    last_prompt_tokens = COALESCE(:last_prompt_tokens, last_prompt_tokens)
WHERE id = (SELECT session_id FROM routes WHERE session_key = :key)
RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: current_of_owner
-- What somebody owns that is the current session of a key.
SELECT {s.session} FROM sessions s
WHERE s.owner = :owner AND EXISTS (SELECT 1 FROM routes r WHERE r.session_id = s.id) ORDER BY s.session_key, s.id;

-- name: list_current
-- The keys' current sessions by latest activity.
SELECT {s.session} FROM sessions s WHERE s.id IN (
    SELECT l.id FROM sessions l
    WHERE l.active_minute >= :since_minute AND l.active_minute <= :before_minute
        AND l.updated_at >= :since AND (l.updated_at, l.id) < (:before, CAST(:before_id AS text))
        AND EXISTS (SELECT 1 FROM routes r WHERE r.session_id = l.id)
    ORDER BY l.active_minute DESC, l.updated_at DESC, l.id DESC LIMIT :limit
)
ORDER BY s.active_minute DESC, s.updated_at DESC, s.id DESC;

-- name: count_sessions
-- How many sessions were ever created, at most so many.
SELECT COUNT(*) FROM (SELECT 1 FROM sessions LIMIT :limit) AS counted;

-- name: unfinalized
-- Current sessions whose end has not been dealt with.
SELECT {s.session} FROM sessions s
WHERE s.expiry_finalized = 0 AND s.ended_at IS NULL AND s.id > :after_id
    AND EXISTS (SELECT 1 FROM routes r WHERE r.session_id = s.id)
ORDER BY s.id LIMIT :limit;

-- name: recent_sessions
-- Current sessions active since a time that are neither suspended nor marked.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */ FROM sessions s
WHERE s.active_minute >= :since_minute AND s.updated_at >= :since AND s.suspended = 0 AND s.resume_pending = 0 AND s.ended_at IS NULL
    AND EXISTS (SELECT 1 FROM routes r WHERE r.session_id = s.id)
ORDER BY s.id /*pg FOR UPDATE OF s */;

-- name: stale_keys
-- Keys whose session has rested since before a time.
SELECT s.session_key FROM sessions s
WHERE s.active_minute <= :before_minute AND s.updated_at < :before AND s.suspended = 0
    AND EXISTS (SELECT 1 FROM routes r WHERE r.session_id = s.id)
ORDER BY s.active_minute, s.updated_at;

-- name: set_title
-- Name a session; the owner's other sessions with that title stand in the way.
UPDATE sessions SET title = :title, title_key = :title_key, named = 0 WHERE id = :session_id
RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: titled
-- The owner's session with a title.
SELECT {s.session} FROM sessions s WHERE s.owner = :owner AND s.title_key = :title_key;

-- name: titled_locked
-- The same, to be changed in this transaction.
SELECT {s.session} /*pg , pg_current_xact_id() AS xid */ FROM sessions s
WHERE s.owner = :owner AND s.title_key = :title_key /*pg FOR UPDATE OF s */;

-- name: begun_by
-- How many sessions somebody has begun on a platform since a time, and when the first of them.
SELECT COUNT(*), MIN(s.created_at) FROM sessions s
WHERE s.owner = :owner AND s.active_minute >= :minute AND s.platform = :platform AND s.created_at > :since;

-- name: rename_session
-- A session found under another key and owner.
UPDATE sessions SET session_key = :session_key, owner = :owner, peer = :peer, named = 0 WHERE id = :session_id;

-- name: sessions_of_whatsapp
-- All sessions of a WhatsApp person, on any account of ours, to be changed in this transaction.
SELECT {s.session} FROM sessions s
WHERE s.owner = 'whatsapp:' || :name OR (s.platform = 'whatsapp' AND s.owner LIKE 'whatsapp@%:' || :name)
ORDER BY s.updated_at, s.id /*pg FOR UPDATE OF s */;

-- name: canonical
-- The names that a name leads to, each with the one before; older tables lead to the person in several steps.
WITH RECURSIVE steps (identifier, canonical) AS (
    SELECT a.identifier, a.canonical FROM aliases a WHERE a.identifier = :identifier
    UNION SELECT a.identifier, a.canonical FROM aliases a JOIN steps s ON a.identifier = s.canonical
)
SELECT canonical, identifier FROM steps;

-- name: learn_alias
-- One more name of a person.
INSERT INTO aliases (identifier, canonical) VALUES (:identifier, :canonical)
ON CONFLICT (identifier) DO UPDATE SET canonical = excluded.canonical
/*pg RETURNING pg_current_xact_id() AS xid */;
