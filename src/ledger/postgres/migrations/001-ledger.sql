-- The tables of the SQLite ledger under the same names, so that the same statements run on both.
-- Times are ISO 8601 in UTC with milliseconds; text has the order of code points, whatever the database's own is.

CREATE DOMAIN words AS text COLLATE "C";

CREATE TABLE arrivals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  drop_name words NOT NULL,
  path words NOT NULL,
  -- Base name of the path.
  name words NOT NULL,
  size bigint NOT NULL,
  mtime words NOT NULL,
  sha256 words,
  state words NOT NULL CHECK (state IN ('settling', 'unmatched', 'duplicate', 'skipped', 'matched')),
  reason words NOT NULL,
  seen_at words NOT NULL,
  changed_at words NOT NULL,
  gone_at words,
  -- The latest run.
  run_id words,
  -- The container whose entry it is.
  parent_id bigint REFERENCES arrivals (id)
);

-- One arrival lies at a path at a time.
CREATE UNIQUE INDEX arrivals_lying ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NULL;
CREATE UNIQUE INDEX arrivals_entry ON arrivals (parent_id, path) WHERE parent_id IS NOT NULL;
CREATE INDEX arrivals_state ON arrivals (drop_name, state, id) WHERE gone_at IS NULL;
CREATE INDEX arrivals_name ON arrivals (name);
CREATE INDEX arrivals_content ON arrivals (sha256, path, drop_name) WHERE sha256 IS NOT NULL;
CREATE INDEX arrivals_changed ON arrivals (changed_at);
CREATE INDEX arrivals_gone ON arrivals (gone_at) WHERE gone_at IS NOT NULL;

-- Drops that were looked through to the end at least once.
CREATE TABLE drops (
  name words PRIMARY KEY,
  first_listed_at words NOT NULL
);

-- Bindings repeat from run to run; each is kept once, or twice when two nodes come with it at the same moment.
CREATE TABLE bindings (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  json words NOT NULL
);
-- An ordered index refuses long texts.
CREATE INDEX bindings_json ON bindings USING hash (json);

CREATE TABLE runs (
  id words PRIMARY KEY,
  arrival_id bigint NOT NULL REFERENCES arrivals (id),
  drop_name words NOT NULL,
  path words NOT NULL,
  size bigint NOT NULL,
  mtime words NOT NULL,
  sha256 words,
  binding_id bigint NOT NULL REFERENCES bindings (id),
  lane words NOT NULL,
  state words NOT NULL CHECK (state IN ('claimed', 'fetched', 'opened', 'mapping', 'mapped', 'delivering', 'accepted', 'confirmed',
    'empty', 'held', 'discarded', 'quarantined', 'cancelled')),
  -- JSON, or null.
  reason words,
  mapped bigint NOT NULL DEFAULT 0,
  accepted bigint NOT NULL DEFAULT 0,
  stored bigint NOT NULL DEFAULT 0,
  rejected bigint NOT NULL DEFAULT 0,
  discarded bigint NOT NULL DEFAULT 0,
  -- The part of `rejected` that the mapper refused.
  refused bigint NOT NULL DEFAULT 0,
  -- Identifier kinds of its targets, sorted, separated by commas.
  target_kinds words NOT NULL DEFAULT '',
  -- JSON, or null.
  finish_plan words,
  finished_at words,
  -- 1 when nobody will tell more about an accepted run, and when an opened one waits for a person or is done.
  settled integer NOT NULL DEFAULT 0,
  -- JSON of what the run does again and how, or null.
  replay words,
  created_at words NOT NULL,
  changed_at words NOT NULL
);

CREATE INDEX runs_arrival ON runs (arrival_id);
CREATE INDEX runs_binding ON runs (binding_id, id);
CREATE INDEX runs_state ON runs (state, id);
CREATE INDEX runs_drop ON runs (state, drop_name, id);
CREATE INDEX runs_lane ON runs (state, lane, id);
CREATE INDEX runs_unfinished ON runs (state, id) WHERE finished_at IS NULL;
CREATE INDEX runs_unsettled ON runs (state, id) WHERE settled = 0;
CREATE INDEX runs_open ON runs (lane, id) WHERE state IN ('claimed', 'fetched', 'mapping', 'mapped', 'delivering');
CREATE INDEX runs_changed ON runs (changed_at);

ALTER TABLE arrivals ADD FOREIGN KEY (run_id) REFERENCES runs (id) DEFERRABLE INITIALLY IMMEDIATE;

-- Digests of the targets of runs: for the order of lanes, and so that a replay finds the later runs that it would overwrite.
-- An equal digest of unequal targets costs a wait, no more.
CREATE TABLE run_targets (
  run_id words NOT NULL REFERENCES runs (id),
  digest bigint NOT NULL,
  PRIMARY KEY (run_id, digest)
);
CREATE INDEX run_targets_digest ON run_targets (digest, run_id);

CREATE TABLE rejected_rows (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id words NOT NULL REFERENCES runs (id),
  json words NOT NULL
);
CREATE INDEX rejected_rows_run ON rejected_rows (run_id, id);

CREATE TABLE batches (
  operation_id words PRIMARY KEY,
  run_id words NOT NULL REFERENCES runs (id),
  sequence words NOT NULL,
  -- The sequence with padded numbers, so that text order is the order of sending.
  place words NOT NULL,
  "offset" bigint NOT NULL,
  length bigint NOT NULL,
  points bigint NOT NULL,
  digest words NOT NULL,
  state words NOT NULL CHECK (state IN ('ready', 'sending', 'accepted', 'rejected', 'split')),
  attempts bigint NOT NULL DEFAULT 0,
  answer words,
  accepted_at words,
  -- JSON, or null.
  outcome words
);
CREATE UNIQUE INDEX batches_place ON batches (run_id, place);

CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at words NOT NULL,
  arrival_id bigint NOT NULL REFERENCES arrivals (id),
  run_id words,
  operation_id words,
  what words NOT NULL,
  detail words NOT NULL
);
CREATE INDEX events_arrival ON events (arrival_id, id);

CREATE TABLE pauses (
  kind words NOT NULL CHECK (kind IN ('drop', 'trigger')),
  name words NOT NULL,
  at words NOT NULL,
  by words NOT NULL,
  why words NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Entries go with their container, which is listed in their stead; also those of containers in it.
CREATE FUNCTION entries_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  WITH RECURSIVE inside (id) AS (
    SELECT id FROM arrivals WHERE parent_id = NEW.id
    UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id
  ), left_now AS (
    UPDATE arrivals SET gone_at = NEW.gone_at WHERE gone_at IS NULL AND id IN (SELECT id FROM inside) RETURNING id
  )
  INSERT INTO events (at, arrival_id, what, detail)
    SELECT NEW.gone_at, id, 'arrival.gone', 'its container has gone from the drop' FROM left_now ORDER BY id;
  RETURN NULL;
END $$;

CREATE TRIGGER entries_go AFTER UPDATE OF gone_at ON arrivals FOR EACH ROW
  WHEN (NEW.gone_at IS NOT NULL AND OLD.gone_at IS NULL AND NEW.parent_id IS NULL)
  EXECUTE FUNCTION entries_go();
