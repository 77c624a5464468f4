-- When something of its lane first had to wait for a file that was seen earlier and whose folder could not be listed: once, and not for ever.
ALTER TABLE arrivals ADD COLUMN awaited_since TEXT;
CREATE INDEX arrivals_awaited ON arrivals (drop_name, id)
  WHERE awaited_since IS NOT NULL AND state = 'settling' AND gone_at IS NULL;

-- Until the first listing of a drop is complete: folders that were listed in full (1), and those that were seen in them and were not (0).
CREATE TABLE drop_folders (
  drop_name TEXT NOT NULL,
  folder TEXT NOT NULL,
  listed integer NOT NULL,
  PRIMARY KEY (drop_name, folder)
);
