-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- part: asked
-- A confirmation with what can be erased of it, and what the one who decided said.
{c.confirmation}, p.payload, p.description, p.callbacks, v.name, v.reason

-- part: listed
-- The same without a payload that is long.
{c.confirmation}, CASE WHEN LENGTH(p.payload) <= :most_bytes THEN p.payload END AS payload,
    p.description, p.callbacks, v.name, v.reason

-- part: joined
-- Where that stands.
FROM confirmations c
LEFT JOIN confirmation_payloads p ON p.confirmation_id = c.id
LEFT JOIN confirmation_votes v ON v.confirmation_id = c.id AND v.person = c.resolved_by

-- part: waits
-- It can still be decided. What is from later than the latest was asked by a clock that was wrong.
c.status = 'pending' AND c.expires_at > :now AND c.created_at < :latest

-- name: confirmation
-- A confirmation by its id.
SELECT {asked} {joined}
WHERE c.id = :confirmation_id;

-- name: confirmation_locked
-- The same, to be changed in this transaction.
SELECT {asked} /*pg , pg_current_xact_id() AS xid */ {joined}
WHERE c.id = :confirmation_id /*pg FOR NO KEY UPDATE OF c */;

-- name: confirmation_of_key
-- What an idempotency key was used for.
SELECT {asked} {joined}
WHERE c.id = (SELECT confirmation_id FROM confirmation_keys WHERE requester = :requester AND key = :key);

-- name: confirmation_of_turn
-- The newest one that a turn asked for an action.
SELECT {asked} {joined}
WHERE c.turn_id = :turn_id AND c.digest = :digest ORDER BY c.number DESC LIMIT 1;

-- name: renewal_of
-- The one that asks again.
SELECT {asked} {joined}
WHERE c.renewal_of = :confirmation_id;

-- name: precedent
-- What people approved before some time of the same kind: for a credential the last, unless it is long, and
-- whether there was any for a target.
SELECT found.id, CASE WHEN LENGTH(p.payload) <= :most_bytes THEN p.payload END AS payload, (
    SELECT c.id FROM confirmations c
    WHERE c.target_digest = :target_digest AND c.status = 'approved' AND c.asked = 1
        AND c.id <> :confirmation_id AND c.resolved_at < :before LIMIT 1
) AS target FROM (SELECT 1 AS one) AS always LEFT JOIN (
    SELECT c.id FROM confirmations c
    WHERE c.kind_digest = :kind_digest AND c.credential = :credential AND c.status = 'approved' AND c.asked = 1
        AND c.id <> :confirmation_id AND c.resolved_at < :before
    ORDER BY c.number DESC LIMIT 1
) AS found ON TRUE LEFT JOIN confirmation_payloads p ON p.confirmation_id = found.id;

-- name: confirmation_status
-- What became of one so far.
SELECT status FROM confirmations WHERE id = :confirmation_id;

-- name: list_confirmations
-- All of them, newest first, without what is long.
SELECT {listed} {joined}
ORDER BY c.number DESC LIMIT :limit;

-- name: list_confirmations_with
-- Those with a status, newest first, without what is long.
SELECT {listed} {joined}
WHERE c.status = :status ORDER BY c.number DESC LIMIT :limit;

-- name: page_of_confirmations
-- Those with a status before one of them, newest first, without what is long.
SELECT {listed}, c.number {joined}
WHERE c.status = :status AND c.number < :before ORDER BY c.number DESC LIMIT :limit;

-- name: confirmation_rows
-- All of them in the order of their numbers, some at a time.
SELECT {asked}, c.number {joined}
WHERE c.number > :after ORDER BY c.number LIMIT :limit;

-- name: same_requests
-- The same action of the same requester that waits in the same conversation and for the same turn, or what a
-- person lately denied to the same credential, whatever it was called. One look finds both: what waited a
-- moment ago may be denied now.
SELECT {asked} {joined}
WHERE c.requester = :requester AND c.digest = :digest AND c.asked = 1 AND {waits}
        AND c.session_key IS NOT DISTINCT FROM CAST(:session_key AS text)
        AND c.turn_id IS NOT DISTINCT FROM CAST(:turn_id AS text)
    OR c.credential = :credential AND c.subject IN (:subject, :digest) AND c.asked = 1 AND c.status = 'denied'
        AND c.resolved_at > :since AND c.resolved_at < :until
ORDER BY c.number;

-- name: confirmation_load
-- How often an action was asked for lately, however it was written, and since when; how often people were
-- asked for a credential, and since when; how many requests wait and until when; after how many denials the
-- credential is paused, if it is.
SELECT
    lately.number, lately.first_at, prompts.number, prompts.first_at, waiting.number, waiting.first_at,
    (SELECT denials FROM confirmation_pauses WHERE credential = :credential AND paused_at IS NOT NULL) AS paused
    /*pg , pg_current_xact_id() AS xid */
FROM (
    SELECT COUNT(*) AS number, MIN(created_at) AS first_at FROM confirmations
    WHERE reads_as = :reads_as AND asked = 1 AND created_at > :since AND created_at < :until
) AS lately, (
    SELECT COUNT(*) AS number, MIN(created_at) AS first_at FROM confirmations
    WHERE credential = :credential AND asked = 1 AND created_at > :since AND created_at < :until
) AS prompts, (
    SELECT COUNT(*) AS number, MIN(c.expires_at) AS first_at FROM confirmations c WHERE {waits}
) AS waiting;

-- name: decided_at_once
-- How many requests of a credential were decided lately without a person, and since when.
SELECT COUNT(*), MIN(created_at) FROM confirmations
WHERE credential = :credential AND asked = 0 AND created_at > :since AND created_at < :until;

-- name: pause_of
-- Since when a credential is paused, and after how many denials.
SELECT {requester_pause} FROM confirmation_pauses
WHERE credential = :credential AND paused_at IS NOT NULL;

-- name: pauses
-- All who are paused, the longest first.
SELECT {requester_pause} FROM confirmation_pauses WHERE paused_at IS NOT NULL ORDER BY paused_at, credential;

-- name: count_denial
-- Somebody denied once more.
INSERT INTO confirmation_pauses (credential, denials) VALUES (:credential, 1)
ON CONFLICT (credential) DO UPDATE SET denials = confirmation_pauses.denials + 1
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: begin_pause
-- These were enough in a row.
UPDATE confirmation_pauses SET paused_at = :now
WHERE credential = :credential AND paused_at IS NULL AND denials >= :most RETURNING denials;

-- name: forget_denials
-- Somebody approved: the row of denials is over, unless it led to a pause.
DELETE FROM confirmation_pauses WHERE credential = :credential AND paused_at IS NULL;

-- name: lift_pause
-- People may be asked again.
DELETE FROM confirmation_pauses WHERE credential = :credential AND paused_at IS NOT NULL
RETURNING denials /*pg , pg_current_xact_id() AS xid */;

-- name: count_waiting
-- How many requests wait.
SELECT COUNT(*) FROM confirmations c WHERE {waits};

-- name: insert_confirmation
-- A request, waiting or decided at once.
INSERT INTO confirmations (
    id, action, digest, requester, session_key, on_behalf_of, turn_id, status, asked, terms, timeout_seconds,
    created_at, expires_at, escalates_at, resolved_at, resolved_by, renewal_of, approvals,
    reads_as, credential, subject, kind_digest, target_digest, on_behalf_name
) VALUES (
    :id, :action, :digest, :requester, :session_key, :on_behalf_of, :turn_id, :status, :asked, :terms,
    :timeout_seconds, :created_at, :expires_at, :escalates_at, :resolved_at, :resolved_by, :renewal_of,
    :approvals, :reads_as, :credential, :subject, :kind_digest, :target_digest, :on_behalf_name
);

-- name: insert_payload
-- What can be erased of a request.
INSERT INTO confirmation_payloads (confirmation_id, payload, description, callbacks)
VALUES (:confirmation_id, :payload, :description, :callbacks);

-- name: callbacks_of
-- The programs that want to hear of the decision.
SELECT callbacks FROM confirmation_payloads WHERE confirmation_id = :confirmation_id;

-- name: put_callbacks
-- One more program wants to hear of the decision.
UPDATE confirmation_payloads SET callbacks = :callbacks WHERE confirmation_id = :confirmation_id;

-- name: put_confirmation_key
-- An idempotency key was used.
INSERT INTO confirmation_keys (requester, key, confirmation_id, used_at)
VALUES (:requester, :key, :confirmation_id, :now)
ON CONFLICT (requester, key) DO UPDATE SET confirmation_id = excluded.confirmation_id, used_at = excluded.used_at;

-- name: count_confirmation_keys
-- How many idempotency keys lead to a request.
SELECT COUNT(*) FROM confirmation_keys WHERE confirmation_id = :confirmation_id;

-- name: put_vote
-- Somebody voted; their later word counts.
INSERT INTO confirmation_votes (confirmation_id, person, approves, name, reason, voted_at)
VALUES (:confirmation_id, :person, :approves, :name, :reason, :now)
ON CONFLICT (confirmation_id, person) DO UPDATE SET approves = excluded.approves, name = excluded.name,
    reason = excluded.reason, voted_at = excluded.voted_at;

-- name: count_approval
-- One more said yes, and more are needed.
UPDATE confirmations SET approvals = :approvals WHERE id = :confirmation_id AND status = 'pending';

-- name: resolve_confirmation
-- Decide what waits; of several who try, one does.
UPDATE confirmations SET status = :status, resolved_at = :now, resolved_by = :by, approvals = :approvals
WHERE id = :confirmation_id AND status = 'pending' RETURNING 1;

-- name: expire_confirmation
-- Nobody decided in time.
UPDATE confirmations SET status = 'expired', resolved_at = :now, resolved_by = :by
WHERE id = :confirmation_id AND status = 'pending';

-- part: granted
-- It can be redeemed, as far as nobody has found that its time is over.
status = 'approved' AND redeemed_at IS NULL AND lapsed_at IS NULL

-- name: redeem_confirmation
-- Use a grant up; of several who try, one does.
UPDATE confirmations SET redeemed_at = :now, redeemed_by = :by
WHERE id = :confirmation_id AND {granted} RETURNING 1;

-- name: lapse_confirmation
-- The time of a grant is over, whatever clocks say later.
UPDATE confirmations SET lapsed_at = :now WHERE id = :confirmation_id AND {granted};

-- name: lapse_confirmations
-- The same for all whose time is over, or who were decided by a clock that was wrong, some at a time.
UPDATE confirmations SET lapsed_at = :now WHERE id IN (
    SELECT o.id FROM confirmations o
    WHERE o.status = 'approved' AND o.redeemed_at IS NULL AND o.lapsed_at IS NULL
        AND (o.resolved_at <= :before OR o.resolved_at >= :after)
    ORDER BY o.resolved_at LIMIT :limit /*pg FOR NO KEY UPDATE SKIP LOCKED */
) RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: lapse_all
-- The same for all that could still be redeemed.
UPDATE confirmations SET lapsed_at = :now WHERE {granted} RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: overdue_confirmations
-- What has waited for its time, or was asked by a clock that was wrong, to be ended in this transaction.
SELECT {asked} /*pg , pg_current_xact_id() AS xid */ {joined}
WHERE c.status = 'pending' AND (c.expires_at <= :now OR c.created_at >= :latest)
ORDER BY c.expires_at, c.number LIMIT :limit /*pg FOR NO KEY UPDATE OF c SKIP LOCKED */;

-- name: waiting_of_turn
-- What waits because a turn asked for it, to be ended in this transaction.
SELECT {asked} /*pg , pg_current_xact_id() AS xid */ {joined}
WHERE c.turn_id = :turn_id AND c.status = 'pending' ORDER BY c.number /*pg FOR NO KEY UPDATE OF c */;

-- name: waiting_for_nobody
-- What waits although the turn that asked for it has ended, to be ended in this transaction.
SELECT {asked} /*pg , pg_current_xact_id() AS xid */ {joined}
WHERE c.status = 'pending' AND EXISTS (
    SELECT 1 FROM turns t WHERE t.id = c.turn_id AND t.state NOT IN ('queued', 'running', 'waiting')
) ORDER BY c.number LIMIT :limit /*pg FOR NO KEY UPDATE OF c SKIP LOCKED */;

-- name: turn_goes_on
-- Whether a turn is under way and nobody wants it to stop.
SELECT 1 FROM turns WHERE id = :turn_id AND state IN ('running', 'waiting') AND stop_requested = 0;

-- name: escalating_confirmations
-- What has waited long enough for others to be told, to be marked in this transaction.
SELECT {asked} /*pg , pg_current_xact_id() AS xid */ {joined}
WHERE {waits} AND c.escalates_at <= :now AND c.escalated_at IS NULL
ORDER BY c.escalates_at, c.number LIMIT :limit /*pg FOR NO KEY UPDATE OF c SKIP LOCKED */;

-- name: escalate_confirmation
-- Others were told.
UPDATE confirmations SET escalated_at = :now
WHERE id = :confirmation_id AND status = 'pending' AND escalated_at IS NULL;

-- name: next_confirmation_due
-- When something expires, escalates or lapses next.
SELECT MIN(due_at) FROM (
    SELECT MIN(expires_at) AS due_at FROM confirmations WHERE status = 'pending'
    UNION ALL
    SELECT MIN(resolved_at) + :grant FROM confirmations WHERE {granted}
    UNION ALL
    SELECT MIN(escalates_at) FROM confirmations
    WHERE status = 'pending' AND escalates_at IS NOT NULL AND escalated_at IS NULL
) AS dues;

-- name: erase_payload
-- Forget an action and what was said about it.
DELETE FROM confirmation_payloads WHERE confirmation_id = :confirmation_id RETURNING confirmation_id;

-- name: erase_reasons
-- Forget what people said when they voted.
UPDATE confirmation_votes SET reason = NULL WHERE confirmation_id = :confirmation_id AND reason IS NOT NULL;

-- name: messages_about
-- The messages that tell of a confirmation, to be rewritten in this transaction.
SELECT id, body FROM deliveries WHERE confirmation_id = :confirmation_id ORDER BY number /*pg FOR UPDATE */;

-- name: cards_about
-- The messages that ask about a confirmation.
SELECT {d.delivery} FROM deliveries d
WHERE d.confirmation_id = :confirmation_id AND d.state NOT IN ('dead', 'discarded') ORDER BY d.number LIMIT :limit;

-- name: rewrite_message
-- A message that tells less than it did.
UPDATE deliveries SET body = :body WHERE id = :delivery_id;

-- name: old_confirmations
-- What was decided long ago, to be forgotten in this transaction.
SELECT c.id FROM confirmations c WHERE c.resolved_at < :before AND c.status <> 'pending'
ORDER BY c.resolved_at, c.number LIMIT :limit /*pg FOR UPDATE SKIP LOCKED */;

-- name: forget_votes
-- What people said to it.
DELETE FROM confirmation_votes WHERE confirmation_id = :confirmation_id;

-- name: forget_keys
-- The idempotency keys that it was asked with.
DELETE FROM confirmation_keys WHERE confirmation_id = :confirmation_id;

-- name: forget_callbacks
-- Who was still to be told.
DELETE FROM confirmation_callbacks WHERE confirmation_id = :confirmation_id;

-- name: forget_echoes
-- What happened to it again.
DELETE FROM confirmation_echoes WHERE confirmation_id = :confirmation_id;

-- name: forget_confirmation
-- The confirmation itself, after all that belongs to it.
DELETE FROM confirmations WHERE id = :confirmation_id;

-- name: echo
-- Since when something is counted, and how many were left out of the log.
SELECT since, left_out FROM confirmation_echoes
WHERE confirmation_id = :confirmation_id AND kind = :kind AND why = :why AND actor = :actor /*pg FOR UPDATE */;

-- name: begin_echo
-- It is written down now: from here on it is counted.
INSERT INTO confirmation_echoes (confirmation_id, kind, why, actor, since, left_out)
VALUES (:confirmation_id, :kind, :why, :actor, :since, 0)
ON CONFLICT (confirmation_id, kind, why, actor) DO UPDATE SET since = excluded.since, left_out = 0;

-- name: count_echo
-- It happened again.
UPDATE confirmation_echoes SET left_out = left_out + 1
WHERE confirmation_id = :confirmation_id AND kind = :kind AND why = :why AND actor = :actor
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: close_echoes
-- What has not happened again for a while, some at a time.
DELETE FROM confirmation_echoes WHERE (confirmation_id, kind, why, actor) IN (
    SELECT o.confirmation_id, o.kind, o.why, o.actor FROM confirmation_echoes o
    WHERE o.since <= :before OR o.since >= :after LIMIT :limit /*pg FOR UPDATE SKIP LOCKED */
) RETURNING confirmation_id, kind, why, actor, left_out /*pg , pg_current_xact_id() AS xid */;

-- name: prune_confirmation_keys
-- Idempotency keys that are known no longer, some at a time.
DELETE FROM confirmation_keys WHERE (requester, key) IN (
    SELECT o.requester, o.key FROM confirmation_keys o WHERE o.used_at < :before ORDER BY o.used_at LIMIT :limit
) RETURNING confirmation_id /*pg , pg_current_xact_id() AS xid */;

-- name: insert_rule
-- A rule, unless its id is taken.
INSERT INTO rules (id, expires_at, body) VALUES (:id, :expires_at, :body)
ON CONFLICT (id) DO NOTHING RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: revoke_rule
-- A rule holds no longer.
UPDATE rules SET revoked_at = :now WHERE id = :rule_id AND revoked_at IS NULL
RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: all_rules
-- Every rule that there ever was, oldest first.
SELECT id, body, expires_at, revoked_at FROM rules ORDER BY number;

-- name: rules
-- The rules that hold, oldest first.
SELECT id, body FROM rules
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) ORDER BY number;

-- name: owe_callback
-- A program is to be told.
INSERT INTO confirmation_callbacks (confirmation_id, url, due_at, attempts)
VALUES (:confirmation_id, :url, :now, 0) ON CONFLICT (confirmation_id, url) DO NOTHING;

-- name: claim_callbacks
-- Programs that are to be told now, by whoever asks; if that fails, again later.
UPDATE confirmation_callbacks SET due_at = :until, attempts = attempts + 1
WHERE (confirmation_id, url) IN (
    SELECT o.confirmation_id, o.url FROM confirmation_callbacks o WHERE o.due_at <= :now
    ORDER BY o.due_at LIMIT :limit /*pg FOR UPDATE SKIP LOCKED */
) RETURNING confirmation_id, url, attempts /*pg , pg_current_xact_id() AS xid */;

-- name: move_callback
-- It failed: the next attempt is later.
UPDATE confirmation_callbacks SET due_at = :due_at WHERE confirmation_id = :confirmation_id AND url = :url
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: hasten_callbacks
-- Programs that were to be told later are to be told now.
UPDATE confirmation_callbacks SET due_at = :now WHERE due_at > :latest
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: drop_callback
-- It was heard, or given up.
DELETE FROM confirmation_callbacks WHERE confirmation_id = :confirmation_id AND url = :url
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: count_callbacks
-- How many programs are to be told, and how many of them should have been long ago.
SELECT COUNT(*), COUNT(CASE WHEN due_at < :before THEN 1 END) FROM confirmation_callbacks;

-- name: next_callback_due
-- When the next program is to be told.
SELECT MIN(due_at) FROM confirmation_callbacks;
