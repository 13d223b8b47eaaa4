-- What lets people in over HTTP: tokens, links that become pages, and pages. Secrets are kept as digests.

CREATE TABLE passes (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    person TEXT NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    proof BYTEA,
    bound_to TEXT,
    parent TEXT,
    created_at /*pg BIG*/INT NOT NULL,
    expires_at /*pg BIG*/INT NOT NULL,
    revoked_at /*pg BIG*/INT,
    used_at /*pg BIG*/INT
);

CREATE INDEX passes_by_age ON passes (created_at, id);
CREATE INDEX passes_by_end ON passes (expires_at);
CREATE INDEX passes_of_person ON passes (person);
CREATE INDEX passes_of_parent ON passes (parent);
CREATE INDEX passes_named ON passes (name);
