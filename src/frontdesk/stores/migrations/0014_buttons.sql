-- Buttons under messages: what each does is known by its token alone, until it was used or its time is over.

CREATE TABLE buttons (
    token TEXT NOT NULL PRIMARY KEY,
    delivery_id TEXT NOT NULL,
    chat TEXT NOT NULL,
    sign TEXT,
    does BYTEA NOT NULL,
    until /*pg BIG*/INT NOT NULL,
    used_at /*pg BIG*/INT,
    used_by TEXT
);

CREATE INDEX buttons_of_delivery ON buttons (delivery_id);
CREATE INDEX buttons_until ON buttons (until);
CREATE INDEX buttons_with_sign ON buttons (chat, until) WHERE sign IS NOT NULL AND used_at IS NULL;
