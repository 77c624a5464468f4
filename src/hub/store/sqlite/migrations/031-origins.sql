-- Operations that stored points. Kept when their outcomes are purged, as long as the hub has points.
CREATE TABLE origin (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  operation_id TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  received_ms INTEGER NOT NULL,
  calculation_id INTEGER, -- null: a push
  trace_link TEXT -- as its sender named it
) STRICT;

-- Null: stored by an earlier version of the hub.
ALTER TABLE point ADD COLUMN origin_id INTEGER;
ALTER TABLE point_version ADD COLUMN origin_id INTEGER;
