-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: seal
-- The key with which places are sealed.
SELECT secret FROM seals WHERE name = 'places';

-- name: keep_seal
-- That key, unless there is one.
INSERT INTO seals (name, secret) VALUES ('places', :secret) ON CONFLICT (name) DO NOTHING;
