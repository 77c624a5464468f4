-- Bytes that every node must be able to have, and that no drop keeps: bodies that an HTTP intake took, versions of mappers, lookup
-- tables. They lie in pieces, so that neither a node nor this server holds one as a whole.
CREATE TABLE stored_files (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- `intake <drop>`, `mapper` or `lookup`.
  shelf words NOT NULL,
  path words NOT NULL,
  size bigint NOT NULL,
  -- As the drop tells it; empty where content has its digest as its name.
  mtime words NOT NULL DEFAULT '',
  used_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX stored_files_path ON stored_files (shelf, path);

CREATE TABLE stored_pieces (
  file_id bigint NOT NULL REFERENCES stored_files (id) ON DELETE CASCADE,
  place bigint NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (file_id, place)
);

-- HTTP intakes, by the names of their drops.
CREATE TABLE intakes (
  drop_name words PRIMARY KEY,
  -- Signs the access tokens, so that every node takes those that another has given.
  secret bytea NOT NULL,
  last_id bigint NOT NULL DEFAULT 0
);

-- What is known of a body beside its bytes. It is committed with them.
CREATE TABLE intake_receipts (
  drop_name words NOT NULL,
  -- Microseconds since 1970, increasing without ties.
  id bigint NOT NULL,
  path words NOT NULL,
  size bigint NOT NULL,
  -- The body waits: it was neither deleted nor archived.
  lying boolean NOT NULL DEFAULT true,
  -- Digests: of route and bytes; of sender, operationId, route and bytes; of sender and Idempotency-Key.
  content words NOT NULL,
  told words,
  keyed words,
  -- JSON.
  record words NOT NULL,
  PRIMARY KEY (drop_name, id)
);
CREATE UNIQUE INDEX intake_receipts_path ON intake_receipts (drop_name, path);
CREATE INDEX intake_receipts_lying ON intake_receipts (drop_name, id) WHERE lying;
CREATE INDEX intake_receipts_told ON intake_receipts (drop_name, told) WHERE told IS NOT NULL;
CREATE INDEX intake_receipts_keyed ON intake_receipts (drop_name, keyed) WHERE keyed IS NOT NULL;
