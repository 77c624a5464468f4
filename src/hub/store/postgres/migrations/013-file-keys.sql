-- The Idempotency-Key of the request that a file came with: it is kept as long as the record.
ALTER TABLE stored_file ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX stored_file_by_key ON stored_file(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
