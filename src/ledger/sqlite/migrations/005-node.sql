-- As the ledger in PostgreSQL has it, so that runs are read alike. Null, since one process owns this one.
ALTER TABLE runs ADD COLUMN node TEXT;
