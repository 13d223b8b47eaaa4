-- What people approved before of the same kind, found by one look. Older rows are of no kind.

ALTER TABLE confirmations ADD COLUMN kind_digest TEXT;
ALTER TABLE confirmations ADD COLUMN target_digest TEXT;
ALTER TABLE confirmations ADD COLUMN on_behalf_name TEXT;

CREATE INDEX confirmations_of_kind ON confirmations (kind_digest, credential, number)
    WHERE status = 'approved' AND asked = 1;
CREATE INDEX confirmations_of_target ON confirmations (target_digest)
    WHERE status = 'approved' AND asked = 1;
