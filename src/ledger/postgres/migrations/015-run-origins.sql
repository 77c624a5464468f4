-- Who sent the file, and what its operations are named after: apart from the binding, which runs share.
ALTER TABLE runs ADD COLUMN sender words;
ALTER TABLE runs ADD COLUMN operation_prefix words;
CREATE INDEX runs_operation_prefix ON runs (operation_prefix, id) WHERE operation_prefix IS NOT NULL;
