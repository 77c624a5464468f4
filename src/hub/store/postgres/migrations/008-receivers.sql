ALTER TABLE operation ADD COLUMN webhook_host TEXT; -- of `webhook_url`, with its port; deliveries take turns by it
UPDATE operation SET webhook_host = '' WHERE webhook_url IS NOT NULL;
CREATE INDEX operation_webhook_host ON operation(account_id, webhook_host, webhook_next_ms, seq) WHERE webhook_state = 'due';
