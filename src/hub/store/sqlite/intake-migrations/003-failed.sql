CREATE INDEX operation_failed ON operation(account_id, seq) WHERE state = 'failed';
CREATE INDEX operation_accepted ON operation(account_id, seq) WHERE state = 'accepted';
