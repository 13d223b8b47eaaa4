-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: keep_file
-- What became of a file of a turn; of a turn that runs again, what became of it this time.
INSERT INTO files ({kept_file}) VALUES (
    :turn_id, :way, :place, :session_id, :name, :kind, :size, :digest, :said, :why, :kept_at, :brought_by
)
ON CONFLICT (turn_id, way, place, session_id) DO UPDATE SET
    name = excluded.name, kind = excluded.kind, size = excluded.size,
    digest = excluded.digest, said = excluded.said, why = excluded.why, kept_at = excluded.kept_at
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: files_of_turn
-- The files that came with a message, or that an agent gave, in their order.
SELECT {kept_file} FROM files
WHERE turn_id = :turn_id AND way = :way AND session_id = :session_id ORDER BY place;

-- name: copy_files
-- A session that begins with messages of another one has the files of these, too.
INSERT INTO files ({kept_file})
SELECT turn_id, way, place, :session_id, name, kind, size, digest, said, why, kept_at, NULL FROM files
WHERE session_id = :parent_id AND digest IS NOT NULL
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: forget_files
-- Forget the files of a session; by their digests.
DELETE FROM files WHERE session_id = :session_id
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: forget_forgotten_files
-- Forget the files of sessions that were forgotten themselves.
DELETE FROM files WHERE EXISTS (
    SELECT 1 FROM sessions WHERE sessions.id = files.session_id AND sessions.end_reason = :reason
)
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: prune_files
-- Forget files that came before a time.
DELETE FROM files WHERE kept_at < :before
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: files_brought
-- What somebody brought and has sent with no message yet, oldest first.
SELECT {kept_file} FROM files WHERE brought_by = :brought_by ORDER BY kept_at, turn_id;

-- name: take_brought
-- What somebody brought is part of a message now.
UPDATE files SET turn_id = :turn_id, place = :place, kept_at = :now, brought_by = NULL
WHERE turn_id = :file_id AND brought_by = :brought_by
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: drop_brought
-- Forget what somebody brought; by its digest.
DELETE FROM files WHERE turn_id = :file_id AND brought_by = :brought_by
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: prune_brought
-- Forget what was brought before a time and sent with no message.
DELETE FROM files WHERE brought_by IS NOT NULL AND kept_at < :before
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: assign_files
-- The files that came with a message are those of the session that it is said in.
UPDATE files SET session_id = :session_id WHERE turn_id = :turn_id AND way = :way AND session_id = ''
RETURNING digest /*pg , pg_current_xact_id() AS xid */;

-- name: copy_turn_files
-- A turn that begins again in another session has its files there, too.
INSERT INTO files ({kept_file})
SELECT turn_id, way, place, :session_id, name, kind, size, digest, said, why, kept_at, NULL FROM files
WHERE turn_id = :turn_id AND way = :way AND session_id = (
    SELECT MIN(others.session_id) FROM files others WHERE others.turn_id = :turn_id AND others.way = :way
)
ON CONFLICT (turn_id, way, place, session_id) DO NOTHING
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: file_of_session
-- A file of a session by its bytes.
SELECT {kept_file} FROM files WHERE session_id = :session_id AND digest = :digest
ORDER BY kept_at, turn_id, place LIMIT 1;

-- name: has_digest
-- Whether somebody has a file of these bytes.
SELECT 1 FROM files WHERE digest = :digest LIMIT 1;

-- name: count_files
-- How many files there are of which we have the bytes.
SELECT COUNT(DISTINCT digest) FROM files;
