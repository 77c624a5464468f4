-- Who sent the file, and what its operations are named after: apart from the binding, which runs share.
ALTER TABLE runs ADD COLUMN sender TEXT;
ALTER TABLE runs ADD COLUMN operation_prefix TEXT;
CREATE INDEX runs_operation_prefix ON runs (operation_prefix, id) WHERE operation_prefix IS NOT NULL;
