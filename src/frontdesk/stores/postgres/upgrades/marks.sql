-- Moving keys of the older form: what differs between the databases.

-- name: stage_sessions
-- Sessions that move: [[id, old key, new key], ...].
INSERT INTO moved_sessions (id, old_key, new_key)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_array_elements(CAST(CAST(:rows AS text) AS json));

-- name: stage_turns
-- Turns that move: [[id, old key, new key], ...].
INSERT INTO moved_turns (id, old_key, new_key)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_array_elements(CAST(CAST(:rows AS text) AS json));

-- name: empty_index
-- Forget the words, whose owners have other names now.
DELETE FROM words;

-- name: begin_index
-- Look at every message again.
UPDATE indexed SET up_to = '0';
