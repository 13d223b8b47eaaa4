-- People: who was let in, which codes wait to be typed, whom we answered, who is one person.

CREATE TABLE grants (
    principal TEXT NOT NULL PRIMARY KEY,
    platform TEXT NOT NULL,
    role TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    granted_by TEXT NOT NULL,
    name TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE pairings (
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    platform TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    name TEXT,
    salt BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (kind, principal)
) STRICT, WITHOUT ROWID;

CREATE INDEX pairings_by_platform ON pairings (platform, expires_at);

CREATE TABLE strangers (
    principal TEXT NOT NULL PRIMARY KEY,
    platform TEXT NOT NULL,
    answered_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX strangers_by_platform ON strangers (platform, answered_at);

CREATE TABLE lockouts (
    place TEXT NOT NULL PRIMARY KEY,
    failures INTEGER NOT NULL,
    since INTEGER NOT NULL,
    locked_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
    principal TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX links_by_person ON links (person);
