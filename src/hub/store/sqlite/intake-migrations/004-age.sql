-- Old operations are found by their age, so that the hourly removal reads those alone that go.
CREATE INDEX operation_by_age ON operation(accepted_ms);
CREATE INDEX operation_key_by_age ON operation(accepted_ms) WHERE idempotency_key IS NOT NULL;
