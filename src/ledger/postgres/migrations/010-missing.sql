-- Since which complete listing a file was not shown: it has gone when the next complete listing does not show it either.
ALTER TABLE arrivals ADD COLUMN missing_since text;
CREATE INDEX arrivals_missing ON arrivals (drop_name, id) WHERE missing_since IS NOT NULL AND gone_at IS NULL;
