-- Files that somebody brought and has sent with no message yet.

ALTER TABLE files ADD COLUMN brought_by TEXT;

CREATE INDEX files_brought ON files (brought_by, kept_at) WHERE brought_by IS NOT NULL;
