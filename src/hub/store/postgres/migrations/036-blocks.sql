-- Points of a variable that have neither versions nor tags, many in a row: no point and no other block is between their
-- dates. Written by writers of points, in the lane of the account (`src/hub/store/blocks/`).
CREATE TABLE point_block (
  variable_id BIGINT NOT NULL,
  first_ms BIGINT NOT NULL,
  last_ms BIGINT NOT NULL,
  points BIGINT NOT NULL,
  data BYTEA NOT NULL, -- `src/hub/store/blocks/codec.ts`
  PRIMARY KEY (variable_id, first_ms)
);
-- Compressed already.
ALTER TABLE point_block ALTER COLUMN data SET STORAGE EXTERNAL;
