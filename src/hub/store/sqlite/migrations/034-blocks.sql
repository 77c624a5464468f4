-- Points of a variable that have neither versions nor tags, many in a row: no point and no other block is between their
-- dates. Written by the thread of ingestion (`src/hub/store/blocks/`).
CREATE TABLE point_block (
  variable_id INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  points INTEGER NOT NULL,
  data BLOB NOT NULL, -- `src/hub/store/blocks/codec.ts`
  PRIMARY KEY (variable_id, first_ms)
) STRICT;
