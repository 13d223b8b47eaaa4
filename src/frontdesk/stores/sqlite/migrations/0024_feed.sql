-- The newest row of the feed is never deleted, so the next number is never one that was given before, and no other
-- table has to remember it: that one was written with every message.

CREATE TABLE feed_anew (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    session_key TEXT,
    session_id TEXT,
    turn_id TEXT,
    delivery_id TEXT,
    state TEXT,
    confirmation_id TEXT,
    owner TEXT
) STRICT;

INSERT INTO feed_anew SELECT number, at, kind, session_key, session_id, turn_id, delivery_id, state, confirmation_id, owner
FROM feed;

DROP TABLE feed;

ALTER TABLE feed_anew RENAME TO feed;
