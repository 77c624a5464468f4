-- Times are ISO 8601 in UTC with milliseconds, so that text order is time order.

CREATE TABLE arrivals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  drop_name TEXT NOT NULL,
  path TEXT NOT NULL,
  -- Base name of the path.
  name TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  sha256 TEXT,
  state TEXT NOT NULL CHECK (state IN ('settling', 'unmatched', 'duplicate', 'skipped', 'matched')),
  reason TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  gone_at TEXT,
  -- The latest run.
  run_id TEXT REFERENCES runs (id),
  -- The container whose entry it is.
  parent_id INTEGER REFERENCES arrivals (id)
) STRICT;

-- One arrival lies at a path at a time.
CREATE UNIQUE INDEX arrivals_lying ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NULL;
CREATE UNIQUE INDEX arrivals_entry ON arrivals (parent_id, path) WHERE parent_id IS NOT NULL;
CREATE INDEX arrivals_state ON arrivals (drop_name, state, id) WHERE gone_at IS NULL;
CREATE INDEX arrivals_name ON arrivals (name);
CREATE INDEX arrivals_content ON arrivals (sha256, path, drop_name) WHERE sha256 IS NOT NULL;
CREATE INDEX arrivals_changed ON arrivals (changed_at);

CREATE INDEX arrivals_gone ON arrivals (gone_at) WHERE gone_at IS NOT NULL;

-- Entries go with their container, which is listed in their stead; also those of containers in it.
CREATE TRIGGER entries_go AFTER UPDATE OF gone_at ON arrivals
WHEN NEW.gone_at IS NOT NULL AND OLD.gone_at IS NULL AND NEW.parent_id IS NULL
BEGIN
  INSERT INTO events (at, arrival_id, what, detail)
    SELECT NEW.gone_at, id, 'arrival.gone', 'its container has gone from the drop' FROM arrivals
    WHERE gone_at IS NULL AND id IN (
      WITH RECURSIVE inside (id) AS (SELECT id FROM arrivals WHERE parent_id = NEW.id
        UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id)
      SELECT id FROM inside)
    ORDER BY id;
  UPDATE arrivals SET gone_at = NEW.gone_at
    WHERE gone_at IS NULL AND id IN (
      WITH RECURSIVE inside (id) AS (SELECT id FROM arrivals WHERE parent_id = NEW.id
        UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id)
      SELECT id FROM inside);
END;

-- Drops that were looked through to the end at least once.
CREATE TABLE drops (
  name TEXT PRIMARY KEY,
  first_listed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Bindings repeat from run to run; each is kept once.
CREATE TABLE bindings (
  id INTEGER PRIMARY KEY,
  json TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  arrival_id INTEGER NOT NULL REFERENCES arrivals (id),
  drop_name TEXT NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  sha256 TEXT,
  binding_id INTEGER NOT NULL REFERENCES bindings (id),
  lane TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('claimed', 'fetched', 'opened', 'mapping', 'mapped', 'delivering', 'accepted', 'confirmed',
    'empty', 'held', 'discarded', 'quarantined', 'cancelled')),
  -- JSON, or null.
  reason TEXT,
  mapped INTEGER NOT NULL DEFAULT 0,
  accepted INTEGER NOT NULL DEFAULT 0,
  stored INTEGER NOT NULL DEFAULT 0,
  rejected INTEGER NOT NULL DEFAULT 0,
  discarded INTEGER NOT NULL DEFAULT 0,
  -- The part of `rejected` that the mapper refused.
  refused INTEGER NOT NULL DEFAULT 0,
  -- Identifier kinds of its targets, sorted, separated by commas.
  target_kinds TEXT NOT NULL DEFAULT '',
  -- JSON, or null.
  finish_plan TEXT,
  finished_at TEXT,
  -- 1 when nobody will tell more about an accepted run, and when an opened one waits for a person or is done.
  settled INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  changed_at TEXT NOT NULL
) STRICT;

CREATE INDEX runs_arrival ON runs (arrival_id);
CREATE INDEX runs_binding ON runs (binding_id, id);
CREATE INDEX runs_state ON runs (state, id);
CREATE INDEX runs_drop ON runs (state, drop_name, id);
CREATE INDEX runs_lane ON runs (state, lane, id);
CREATE INDEX runs_unfinished ON runs (state, id) WHERE finished_at IS NULL;
CREATE INDEX runs_unsettled ON runs (state, id) WHERE settled = 0;
CREATE INDEX runs_open ON runs (lane, id)
  WHERE state IN ('claimed', 'fetched', 'mapping', 'mapped', 'delivering');
CREATE INDEX runs_changed ON runs (changed_at);

-- Digests of the targets of runs that others may have to wait for. An equal digest of unequal targets costs a wait, no more.
CREATE TABLE run_targets (
  run_id TEXT NOT NULL REFERENCES runs (id),
  digest INTEGER NOT NULL,
  PRIMARY KEY (run_id, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejected_rows (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id),
  json TEXT NOT NULL
) STRICT;
CREATE INDEX rejected_rows_run ON rejected_rows (run_id, id);

CREATE TABLE batches (
  operation_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id),
  sequence TEXT NOT NULL,
  -- The sequence with padded numbers, so that text order is the order of sending.
  place TEXT NOT NULL,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  points INTEGER NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ready', 'sending', 'accepted', 'rejected', 'split')),
  attempts INTEGER NOT NULL DEFAULT 0,
  answer TEXT,
  accepted_at TEXT,
  -- JSON, or null.
  outcome TEXT
) STRICT;
CREATE UNIQUE INDEX batches_place ON batches (run_id, place);

CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  arrival_id INTEGER NOT NULL REFERENCES arrivals (id),
  run_id TEXT,
  operation_id TEXT,
  what TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_arrival ON events (arrival_id, id);
