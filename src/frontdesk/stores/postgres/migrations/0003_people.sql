-- People: who was let in, which codes wait to be typed, whom we answered, who is one person.

CREATE TABLE grants (
    principal TEXT NOT NULL PRIMARY KEY,
    platform TEXT NOT NULL,
    role TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    name TEXT
);

CREATE TABLE pairings (
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    platform TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    name TEXT,
    salt BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    PRIMARY KEY (kind, principal)
);

CREATE INDEX pairings_by_platform ON pairings (platform, expires_at);

CREATE TABLE strangers (
    principal TEXT NOT NULL PRIMARY KEY,
    platform TEXT NOT NULL,
    answered_at BIGINT NOT NULL
);

CREATE INDEX strangers_by_platform ON strangers (platform, answered_at);

CREATE TABLE lockouts (
    place TEXT NOT NULL PRIMARY KEY,
    failures BIGINT NOT NULL,
    since BIGINT NOT NULL,
    locked_until BIGINT
);

CREATE TABLE links (
    principal TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL
);

CREATE INDEX links_by_person ON links (person);
