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
  webhook_host TEXT, -- of `webhook_url`, with its port; deliveries take turns by it
  webhook_state TEXT CHECK (webhook_state IN ('waiting', 'due', 'delivered', 'given-up')),
  webhook_attempts INTEGER NOT NULL DEFAULT 0,
  webhook_next_ms INTEGER NOT NULL DEFAULT 0,
  webhook_error TEXT,
  calculation_id INTEGER, -- whose outputs the operation stores; null: a push
  trace_link TEXT -- where the sender shows the origin of its readings
) STRICT;
CREATE UNIQUE INDEX operation_by_key ON operation(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_by_id ON operation(account_id, operation_id);
CREATE INDEX operation_waiting ON operation(seq) WHERE state = 'accepted';
CREATE INDEX operation_webhook ON operation(webhook_next_ms) WHERE webhook_state = 'due';
CREATE INDEX operation_failed ON operation(account_id, seq) WHERE state = 'failed';
CREATE INDEX operation_accepted ON operation(account_id, seq) WHERE state = 'accepted';
-- Old operations are found by their age, so that the hourly removal reads those alone that go.
CREATE INDEX operation_by_age ON operation(accepted_ms);
CREATE INDEX operation_key_by_age ON operation(accepted_ms) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_webhook_host ON operation(account_id, webhook_host, webhook_next_ms, seq)
  WHERE webhook_state = 'due';

-- Kept until the operation is done.
CREATE TABLE body (
  seq INTEGER PRIMARY KEY REFERENCES operation(seq),
  bytes BLOB NOT NULL
) STRICT;

-- What accounts with a quota pushed on each day (UTC).
CREATE TABLE usage (
  account_id INTEGER NOT NULL,
  day TEXT NOT NULL, -- 2026-03-01
  points INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (account_id, day)
) WITHOUT ROWID, STRICT;
