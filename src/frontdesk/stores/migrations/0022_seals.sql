-- Keys with which we seal what others keep for us.

CREATE TABLE seals (
    name TEXT PRIMARY KEY,
    secret BYTEA NOT NULL
);
