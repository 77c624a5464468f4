CREATE INDEX operation_failed ON operation(account_id, seq) WHERE state = 'failed';
