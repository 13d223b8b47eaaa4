-- The feed tells of requests and of people, too.

ALTER TABLE feed ADD COLUMN confirmation_id TEXT;
ALTER TABLE feed ADD COLUMN owner TEXT;
