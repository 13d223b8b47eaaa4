-- What is needed to forget what is old or was erased, and to keep the log short where something is repeated.

CREATE INDEX confirmations_resolved ON confirmations (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX confirmations_hasty ON confirmations (created_at) WHERE asked = 0;

ALTER TABLE confirmation_keys ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;

UPDATE confirmation_keys SET used_at = (SELECT created_at FROM confirmations c WHERE c.id = confirmation_id);

CREATE INDEX confirmation_keys_used ON confirmation_keys (used_at);
CREATE INDEX confirmation_keys_of ON confirmation_keys (confirmation_id);

-- The confirmation that a message tells people of.
ALTER TABLE deliveries ADD COLUMN confirmation_id TEXT;

CREATE INDEX deliveries_about ON deliveries (confirmation_id) WHERE confirmation_id IS NOT NULL;

-- What happened again to a confirmation so soon that the log does not tell each time.
CREATE TABLE confirmation_echoes (
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    kind TEXT NOT NULL,
    why TEXT NOT NULL,
    actor TEXT NOT NULL,
    since INTEGER NOT NULL,
    left_out INTEGER NOT NULL,
    PRIMARY KEY (confirmation_id, kind, why, actor)
) STRICT, WITHOUT ROWID;

CREATE INDEX confirmation_echoes_since ON confirmation_echoes (since);
