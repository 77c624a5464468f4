-- Operations that stored points, numbered within each account. Kept when their outcomes are purged, as long as the hub
-- has points.
CREATE TABLE origin (
  account_id BIGINT NOT NULL REFERENCES account(id),
  id BIGINT NOT NULL,
  operation_id TEXT NOT NULL,
  user_id BIGINT NOT NULL,
  received_ms BIGINT NOT NULL,
  calculation_id BIGINT, -- null: a push
  trace_link TEXT, -- as its sender named it
  PRIMARY KEY (account_id, id)
);
ALTER TABLE lane ADD COLUMN origin_id BIGINT NOT NULL DEFAULT 0; -- the last number that was given

-- Null: stored by an earlier version of the hub.
ALTER TABLE point ADD COLUMN origin_id BIGINT;
ALTER TABLE point_version ADD COLUMN origin_id BIGINT;

ALTER TABLE operation ADD COLUMN trace_link TEXT;
