-- What the mapping of a run found out about its file: a JSON array, or NULL for nothing.
ALTER TABLE runs ADD COLUMN findings TEXT;
