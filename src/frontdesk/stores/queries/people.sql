-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: grant_of
-- What somebody was granted.
SELECT {grant} FROM grants WHERE principal = :principal;

-- name: list_grants
-- Everybody who was let in, the latest first, behind one of them.
SELECT {grant} FROM grants
WHERE granted_at < :granted_at OR (granted_at = :granted_at AND principal > :principal)
ORDER BY granted_at DESC, principal LIMIT :limit;

-- name: put_grant
-- Let somebody in, or change what they may do.
INSERT INTO grants (principal, platform, role, granted_at, granted_by, name)
VALUES (:principal, :platform, :role, :granted_at, :granted_by, :name)
ON CONFLICT (principal) DO UPDATE SET role = excluded.role, granted_at = excluded.granted_at,
    granted_by = excluded.granted_by, name = COALESCE(excluded.name, grants.name)
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: drop_grant
-- Somebody is a stranger again.
DELETE FROM grants WHERE principal = :principal RETURNING principal /*pg , pg_current_xact_id() AS xid */;

-- name: drop_pairings_of
-- No code that was shown to somebody counts any more.
DELETE FROM pairings WHERE principal = :principal RETURNING kind;

-- name: drop_expired
-- Codes of a platform that waited for too long.
DELETE FROM pairings WHERE platform = :platform AND expires_at <= :now
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: count_pending
-- How many other people of a platform have a code that waits.
SELECT COUNT(*) FROM pairings
WHERE kind = :kind AND platform = :platform AND principal <> :principal AND expires_at > :now;

-- name: drop_oldest_pairing
-- Who has waited longest to be let in on a platform, and since before a time, gives way to somebody else.
DELETE FROM pairings WHERE kind = :kind AND principal = (
    SELECT p.principal FROM pairings p WHERE p.kind = :kind AND p.platform = :platform
        AND p.principal <> :principal AND p.created_at <= :before
    ORDER BY p.created_at, p.principal LIMIT 1
) RETURNING principal;

-- name: put_pairing
-- A code waits to be typed; one that was shown to the same person before does not any more.
INSERT INTO pairings (kind, principal, platform, created_at, expires_at, name, salt, digest)
VALUES (:kind, :principal, :platform, :created_at, :expires_at, :name, :salt, :digest)
ON CONFLICT (kind, principal) DO UPDATE SET platform = excluded.platform, created_at = excluded.created_at,
    expires_at = excluded.expires_at, name = excluded.name, salt = excluded.salt, digest = excluded.digest
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: pending_pairings
-- The codes that wait, the oldest first.
SELECT {pairing}, salt, digest FROM pairings
WHERE kind = :kind AND expires_at > :now ORDER BY created_at, principal;

-- name: drop_pairing
-- The code that was shown to somebody counts no more.
DELETE FROM pairings WHERE kind = :kind AND principal = :principal
RETURNING principal /*pg , pg_current_xact_id() AS xid */;

-- name: take_pairing
-- Use a code up; of several who try, one does.
DELETE FROM pairings
WHERE kind = :kind AND principal = :principal AND digest = :digest AND expires_at > :now
RETURNING principal /*pg , pg_current_xact_id() AS xid */;

-- name: rename_pairings
-- Codes shown to somebody under another name.
UPDATE pairings SET principal = :principal WHERE principal = :old AND NOT EXISTS (
    SELECT 1 FROM pairings other WHERE other.kind = pairings.kind AND other.principal = :principal
);

-- name: lockout
-- How many wrong codes were typed in a place.
SELECT {lockout} FROM lockouts WHERE place = :place;

-- name: put_lockout
-- One more wrong code.
INSERT INTO lockouts (place, failures, since, locked_until)
VALUES (:place, :failures, :since, :locked_until)
ON CONFLICT (place) DO UPDATE SET failures = excluded.failures, since = excluded.since,
    locked_until = excluded.locked_until
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: stranger
-- Whether a stranger was answered since a time.
SELECT 1 FROM strangers WHERE principal = :principal AND answered_at > :since;

-- name: count_answered
-- How many strangers of a platform were answered since a time.
SELECT COUNT(*) FROM strangers WHERE platform = :platform AND answered_at > :since;

-- name: forget_strangers
-- Those of a platform who were answered before a time may be answered again.
DELETE FROM strangers WHERE platform = :platform AND answered_at <= :since;

-- name: forget_stranger
-- A stranger may be answered again.
DELETE FROM strangers WHERE principal = :principal;

-- name: put_stranger
-- A stranger was answered.
INSERT INTO strangers (principal, platform, answered_at) VALUES (:principal, :platform, :now)
ON CONFLICT (principal) DO UPDATE SET answered_at = excluded.answered_at
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: is_answered
-- Whether something of a chat was taken in to be answered since a time.
SELECT 1 FROM answered WHERE chat = :chat AND event = :event AND at > :since;

-- name: count_taken
-- How much of a chat was taken in to be answered since a time.
SELECT COUNT(*) FROM answered WHERE chat = :chat AND at > :since;

-- name: put_answered
-- Something of a chat is taken in to be answered.
INSERT INTO answered (chat, event, at) VALUES (:chat, :event, :now)
ON CONFLICT (chat, event) DO UPDATE SET at = excluded.at
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: forget_answered
-- What was taken in before a time counts nowhere any more.
DELETE FROM answered WHERE at <= :before;

-- name: person_of
-- The person that somebody is, when they linked anything.
SELECT person FROM links WHERE principal = :principal;

-- name: linked_principals
-- Everybody who is the same person.
SELECT principal FROM links WHERE person = (SELECT person FROM links WHERE principal = :principal)
ORDER BY principal;

-- name: list_links
-- The names of people who have several, person by person, behind one of them.
SELECT person, principal FROM links WHERE person IN (
    SELECT DISTINCT person FROM links WHERE person > :person ORDER BY person LIMIT :limit
) ORDER BY person, principal;

-- name: perhaps_linked
-- Everybody who is, or was a while ago, the same person as somebody whom any account of ours knows by an id.
WITH known (principal, person) AS (
    SELECT principal, person FROM links
    UNION SELECT principal, person FROM former_links WHERE ended_at > :since
)
SELECT DISTINCT principal FROM known WHERE person IN (
    SELECT person FROM known WHERE principal = :principal OR (
        substr(principal, 1, length(CAST(:place AS text))) = CAST(:place AS text)
        AND substr(principal, length(principal) - length(CAST(:tail AS text)) + 1) = CAST(:tail AS text)
    )
) ORDER BY principal;

-- name: parted_from
-- Who was the same person as somebody until lately, and is not any more.
SELECT DISTINCT o.principal FROM former_links f JOIN former_links o ON o.person = f.person
WHERE f.principal = :principal AND o.principal <> :principal AND NOT EXISTS (
    SELECT 1 FROM links a JOIN links b ON b.person = a.person
    WHERE a.principal = :principal AND b.principal = o.principal
);

-- name: keep_former_links
-- Whom somebody was until now, who is about to leave.
INSERT INTO former_links (principal, person, ended_at)
SELECT principal, person, CAST(:now AS /*pg BIG*/INT) FROM links WHERE person = :person
ON CONFLICT (principal, person) DO UPDATE SET ended_at = excluded.ended_at
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: forget_former_links
-- Those that ended long ago.
DELETE FROM former_links WHERE ended_at <= :before;

-- name: merge_former_people
-- Two people turn out to be one: who was one of them was that one.
UPDATE former_links SET person = :person WHERE person = :old AND NOT EXISTS (
    SELECT 1 FROM former_links other
    WHERE other.person = :person AND other.principal = former_links.principal
);

-- name: put_link
-- Somebody is this person.
INSERT INTO links (principal, person) VALUES (:principal, :person)
ON CONFLICT (principal) DO UPDATE SET person = excluded.person
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: merge_people
-- Two people turn out to be one.
UPDATE links SET person = :person WHERE person = :old;

-- name: drop_link
-- Somebody is nobody else.
DELETE FROM links WHERE principal = :principal RETURNING person /*pg , pg_current_xact_id() AS xid */;

-- name: drop_last_link
-- A person of whom only one is left is linked to nobody.
DELETE FROM links WHERE person = :person AND (SELECT COUNT(*) FROM links WHERE person = :person) = 1;

-- name: names_of
-- All the other names of a person, those that lead to them in several steps included.
WITH RECURSIVE names (name) AS (
    SELECT a.identifier FROM aliases a WHERE a.canonical = :canonical
    UNION SELECT a.identifier FROM aliases a JOIN names n ON a.canonical = n.name
)
SELECT name FROM names WHERE name <> :canonical ORDER BY name;

-- name: principals_of_whatsapp
-- A WhatsApp person as our accounts know them, as far as they were let in, linked or shown a code.
SELECT principal FROM (
    SELECT principal FROM grants UNION SELECT principal FROM links UNION SELECT principal FROM pairings
) AS known
WHERE principal = 'whatsapp:' || :name OR principal LIKE 'whatsapp@%:' || :name ORDER BY principal;
