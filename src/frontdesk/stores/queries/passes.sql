-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: insert_pass
-- Something that lets somebody in.
INSERT INTO passes (id, kind, name, role, person, digest, proof, bound_to, parent, created_at, expires_at)
VALUES (:id, :kind, :name, :role, :person, :digest, :proof, :bound_to, :parent, :created_at, :expires_at);

-- name: pass_of_digest
-- A pass by the digest of its secret; a page only while what it was begun with holds, whoever was first to end
-- the one or to begin the other.
SELECT {p.pass} FROM passes p WHERE p.digest = :digest AND (p.parent IS NULL OR EXISTS (
    SELECT 1 FROM passes b WHERE b.id = p.parent AND b.revoked_at IS NULL AND b.expires_at > :now
));

-- name: pass_holds
-- Whether a pass still counts.
SELECT 1 FROM passes WHERE id = :id AND revoked_at IS NULL AND expires_at > :now;

-- name: named_token
-- Whether a token of that name still counts.
SELECT 1 FROM passes WHERE name = :name AND kind = 'token' AND revoked_at IS NULL AND expires_at > :now LIMIT 1;

-- name: redeem_pass
-- A link becomes a page: of all that show it, for one.
UPDATE passes SET kind = 'page', digest = :digest, proof = :proof, created_at = :now, expires_at = :expires_at
WHERE digest = :link AND kind = 'link' AND revoked_at IS NULL AND expires_at > :now
RETURNING {pass} /*pg , pg_current_xact_id() AS xid */;

-- name: revoke_pass
-- End a pass and the pages that were begun with it.
UPDATE passes SET revoked_at = :now
WHERE (id = :id OR parent = :id) AND revoked_at IS NULL AND expires_at > :now
RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: passes_named
-- What is meant by a name: a token's, or the id of any pass.
SELECT {p.pass} FROM passes p
WHERE (p.id = :name OR (p.name = :name AND p.kind = 'token')) AND p.revoked_at IS NULL AND p.expires_at > :now;

-- name: revoke_passes_of
-- End every pass of somebody with a role.
UPDATE passes SET revoked_at = :now
WHERE person = :person AND role = :role AND revoked_at IS NULL AND expires_at > :now
RETURNING id /*pg , pg_current_xact_id() AS xid */;

-- name: list_passes
-- Passes, the latest first, after the one that was shown last.
SELECT {p.pass} FROM passes p
WHERE (p.created_at, p.id) < (:created_at, :id) AND (:over = 1 OR (p.revoked_at IS NULL AND p.expires_at > :now))
ORDER BY p.created_at DESC, p.id DESC LIMIT :limit;

-- name: touch_pass
-- It was used.
UPDATE passes SET used_at = :now WHERE id = :id AND (used_at IS NULL OR used_at < :now);

-- name: drop_pages
-- Forget all pages of somebody but so many: those that hold, and were used last. Whether each still held.
DELETE FROM passes WHERE person = :person AND kind = 'page' AND id NOT IN (
    SELECT p.id FROM passes p WHERE p.person = :person AND p.kind = 'page'
    ORDER BY CASE WHEN p.revoked_at IS NULL AND p.expires_at > :now THEN 0 ELSE 1 END,
        COALESCE(p.used_at, p.created_at) DESC, p.created_at DESC, p.id DESC LIMIT :most
) RETURNING CASE WHEN revoked_at IS NULL AND expires_at > :now THEN 1 ELSE 0 END AS held;

-- name: drop_old_passes
-- Forget those that are long over.
DELETE FROM passes WHERE expires_at < :before;
