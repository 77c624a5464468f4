-- The Idempotency-Key of a batch where it is not its operationId, and the earlier operation that delivered it.
ALTER TABLE batches ADD COLUMN idempotency_key TEXT;
ALTER TABLE batches ADD COLUMN repeats TEXT;
CREATE INDEX batches_repeated ON batches (accepted_at) WHERE repeats IS NOT NULL AND state = 'accepted';
