-- Keys with marks, where ids are free text: what is kept under keys of the older form moves over.
-- step: mark_keys
-- Titles are compared without what cannot be seen and quotes around them.
-- step: fold_titles

CREATE TEMP TABLE moved_sessions (
    id TEXT NOT NULL PRIMARY KEY, old_key TEXT NOT NULL, new_key TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TEMP TABLE moved_turns (
    id TEXT NOT NULL PRIMARY KEY, old_key TEXT NOT NULL, new_key TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TEMP TABLE moved_keys (old_key TEXT NOT NULL PRIMARY KEY, new_key TEXT NOT NULL) STRICT, WITHOUT ROWID;
