-- The trigger that lets nobody change the audit log, as the migration makes it.

-- name: missing_audit_triggers
-- Those that are not there, are switched off, or do something else: 58 is before any UPDATE, DELETE or TRUNCATE.
SELECT made.name FROM (VALUES ('audit_kept')) AS made (name)
WHERE NOT EXISTS (
    SELECT 1 FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE t.tgrelid = 'audit'::regclass AND t.tgname = made.name
        AND t.tgenabled IN ('O', 'A') AND t.tgtype = 58 AND t.tgqual IS NULL AND t.tgnargs = 0
        AND p.prosrc = $$
BEGIN
    RAISE EXCEPTION 'the % log is only added to', TG_TABLE_NAME;
END
$$
);

-- name: drop_audit_triggers
-- Take away what is in its place.
DROP TRIGGER IF EXISTS audit_kept ON audit;

-- name: make_audit_guard
-- What it does.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the % log is only added to', TG_TABLE_NAME;
END
$$;

-- name: make_audit_triggers
-- Put it in its place.
CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
