-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: claim_call
-- A request with a key begins, unless one with that key has.
INSERT INTO keyed_calls (id, request, at) VALUES (:id, :request, :now) ON CONFLICT (id) DO NOTHING RETURNING id;

-- name: keyed_call
-- The request with a key, and what it was answered.
SELECT request, status, answer FROM keyed_calls WHERE id = :id;

-- name: answer_call
-- What a request was answered.
UPDATE keyed_calls SET status = :status, answer = :answer WHERE id = :id;

-- name: drop_call
-- A request of which nothing became.
DELETE FROM keyed_calls WHERE id = :id AND status IS NULL;

-- name: forget_calls
-- Old requests, a few at a time, and those of one sender that are too many.
DELETE FROM keyed_calls WHERE id IN (
    SELECT id FROM (SELECT id FROM keyed_calls WHERE at < :before ORDER BY at LIMIT :limit) AS old
    UNION ALL
    SELECT id FROM (
        SELECT id FROM keyed_calls WHERE id > :first AND id < :end ORDER BY at DESC LIMIT :limit OFFSET :most
    ) AS too_many
);
