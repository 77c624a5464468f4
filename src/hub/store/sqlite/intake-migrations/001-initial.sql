-- The queue of operations, a database of its own: a push is answered without waiting for the writer of points.
CREATE TABLE intake (
  id TEXT NOT NULL -- tells this queue from any other that numbers from 1 again
) STRICT;

CREATE TABLE operation (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of the answers
  account_id INTEGER NOT NULL,
  user_id INTEGER NOT NULL,
  operation_id TEXT NOT NULL,
  idempotency_key TEXT,
  digest TEXT NOT NULL, -- SHA-256 of the body
  timeout_sec INTEGER NOT NULL,
  received INTEGER NOT NULL, -- readings in the body
  accepted_ms INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('accepted', 'done', 'failed')),
  webhook_url TEXT,
  webhook_state TEXT CHECK (webhook_state IN ('waiting', 'due', 'delivered', 'given-up')),
  webhook_attempts INTEGER NOT NULL DEFAULT 0,
  webhook_next_ms INTEGER NOT NULL DEFAULT 0,
  webhook_error TEXT
) STRICT;
CREATE UNIQUE INDEX operation_by_key ON operation(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_by_id ON operation(account_id, operation_id);
CREATE INDEX operation_waiting ON operation(seq) WHERE state = 'accepted';
CREATE INDEX operation_webhook ON operation(webhook_next_ms) WHERE webhook_state = 'due';

-- Kept until the operation is done.
CREATE TABLE body (
  seq INTEGER PRIMARY KEY REFERENCES operation(seq),
  bytes BLOB NOT NULL
) STRICT;
