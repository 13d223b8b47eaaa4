-- How far platforms were read; messages by the platform's own ids; messages that belong to one turn.

CREATE TABLE cursors (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (platform, account, chat)
);

ALTER TABLE turns ADD COLUMN message_digest TEXT;
ALTER TABLE turns ADD COLUMN part_of TEXT;
ALTER TABLE turns ADD COLUMN parts /*pg BIG*/INT NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN message_digest TEXT;

CREATE INDEX turns_by_message ON turns (message_digest) WHERE message_digest IS NOT NULL;
CREATE INDEX turns_by_first ON turns (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX deliveries_by_message ON deliveries (message_digest) WHERE message_digest IS NOT NULL;
