-- Of an unmatched file: no person has to see to it, since its drop expects such files, or its trigger is paused or not known yet.
ALTER TABLE arrivals ADD COLUMN expected INTEGER NOT NULL DEFAULT 0;
CREATE INDEX arrivals_unmatched ON arrivals (drop_name, id) WHERE gone_at IS NULL AND state = 'unmatched' AND expected = 0;
