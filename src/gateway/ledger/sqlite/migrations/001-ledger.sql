-- Times are ISO 8601 in UTC with milliseconds, so that text order is time order.
-- Lists of states (`:run_states`) and conditions on them (`:is_resting`) derive from src/gateway/states.ts.

-- Files at the drops.

CREATE TABLE arrivals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  drop_name TEXT NOT NULL,
  path TEXT NOT NULL,
  -- Base name of the path.
  name TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  sha256 TEXT,
  state TEXT NOT NULL CHECK (state IN (:arrival_states)),
  reason TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  gone_at TEXT,
  -- The latest run.
  run_id TEXT REFERENCES runs (id),
  -- The container whose entry it is.
  parent_id INTEGER REFERENCES arrivals (id),
  -- Since which complete listing a file was not shown: it has gone when the next complete listing does not show it
  -- either.
  missing_since TEXT,
  -- When something of its lane first had to wait for a file that was seen earlier and whose folder could not be listed:
  -- once, and not for ever.
  awaited_since TEXT,
  -- Of an unmatched file: no person has to see to it, since its drop expects such files, or its trigger is paused or
  -- not known yet.
  expected INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One arrival lies at a path at a time.
CREATE UNIQUE INDEX arrivals_lying ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NULL;
CREATE UNIQUE INDEX arrivals_entry ON arrivals (parent_id, path) WHERE parent_id IS NOT NULL;
CREATE INDEX arrivals_name ON arrivals (name);
-- A search for a part of a path goes through all files in their order: it reads a seventh of the pages of the table.
CREATE INDEX arrivals_path ON arrivals (id, path);
CREATE INDEX arrivals_waiting ON arrivals (drop_name, state, id) 
  WHERE gone_at IS NULL AND (state = 'settling' OR state = 'unmatched' OR state = 'duplicate' OR state = 'skipped');
CREATE INDEX arrivals_unmatched ON arrivals (drop_name, id)
  WHERE gone_at IS NULL AND state = 'unmatched' AND expected = 0;
CREATE INDEX arrivals_unclaimed ON arrivals (parent_id) WHERE parent_id IS NOT NULL AND state = 'settling';
CREATE INDEX arrivals_awaited ON arrivals (drop_name, id)
  WHERE awaited_since IS NOT NULL AND state = 'settling' AND gone_at IS NULL;
CREATE INDEX arrivals_missing ON arrivals (drop_name, id) WHERE missing_since IS NOT NULL AND gone_at IS NULL;
CREATE INDEX arrivals_changed ON arrivals (changed_at) WHERE state <> 'settling';
CREATE INDEX arrivals_gone ON arrivals (gone_at) WHERE gone_at IS NOT NULL;
-- Who forgets a run asks whether a file names it, and who forgets a file whether something lies at its path.
CREATE INDEX arrivals_run ON arrivals (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX arrivals_inside ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NOT NULL;

-- Entries go with their container, which is listed in their stead; also those of containers in it.
CREATE TRIGGER entries_go AFTER UPDATE OF gone_at ON arrivals
WHEN NEW.gone_at IS NOT NULL AND OLD.gone_at IS NULL AND NEW.parent_id IS NULL
  AND EXISTS (SELECT 1 FROM arrivals WHERE parent_id = NEW.id)
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

-- Drops.

-- Those that were looked through to the end at least once.
CREATE TABLE drops (
  name TEXT PRIMARY KEY,
  first_listed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Until the first listing of a drop is complete: folders that were listed in full (1), and those that were seen in them
-- and were not (0).
CREATE TABLE drop_folders (
  drop_name TEXT NOT NULL,
  folder TEXT NOT NULL,
  listed INTEGER NOT NULL,
  PRIMARY KEY (drop_name, folder)
) STRICT;

-- The longest pause in which a file of the drop did not change, and then grew.
CREATE TABLE growth_pauses (
  drop_name TEXT PRIMARY KEY,
  path TEXT NOT NULL,
  pause_ms INTEGER NOT NULL,
  at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Host keys of servers that a person approved, for all nodes.
CREATE TABLE approved_keys (
  drop_name TEXT NOT NULL,
  -- Of a known_hosts file: a comment and an entry.
  lines TEXT NOT NULL,
  approved_at TEXT NOT NULL,
  PRIMARY KEY (drop_name, lines)
) STRICT, WITHOUT ROWID;

-- Runs and their batches.

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
  state TEXT NOT NULL CHECK (state IN (:run_states)),
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
  -- JSON of what the run does again and how, or null.
  replay TEXT,
  created_at TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  -- Null, since one process owns this ledger; that of PostgreSQL has the name of a node.
  node TEXT,
  -- JSON of how long the service could be asked about the run, and how long not; null until that was counted.
  confirm_clock TEXT,
  -- Who sent the file, and what its operations are named after: apart from the binding, which runs share.
  sender TEXT,
  operation_prefix TEXT,
  -- What the mapping found out about the file: a JSON array, or null for nothing.
  findings TEXT
) STRICT;

CREATE INDEX runs_arrival ON runs (arrival_id);
CREATE INDEX runs_binding ON runs (binding_id, id);
CREATE INDEX runs_operation_prefix ON runs (operation_prefix, id) WHERE operation_prefix IS NOT NULL;

-- By state. A run in progress is only in those of its stage, so that each state that it passes costs little; the long
-- ones receive it when it comes to rest. A query that uses one repeats its condition
-- (src/gateway/ledger/records/run-indexes.ts).
CREATE INDEX runs_intake ON runs (state, drop_name, id) WHERE :is_unmapped;
-- For the order of lanes.
CREATE INDEX runs_unmapped ON runs (lane, id) WHERE :is_unmapped;
CREATE INDEX runs_delivery ON runs (state, lane, id, target_kinds) WHERE :is_to_deliver;
CREATE INDEX runs_unsettled ON runs (state, lane, id) WHERE settled = 0 AND :is_unsettled;
CREATE INDEX runs_unfinished ON runs (state, drop_name, id) WHERE finished_at IS NULL AND :is_unfinished;
CREATE INDEX runs_resting ON runs (state, id) WHERE :is_resting;
CREATE INDEX runs_changed ON runs (changed_at) WHERE :is_resting;

-- Digests of the targets of runs: for the order of lanes, and so that a replay finds the later runs that it would
-- overwrite. An equal digest of unequal targets costs a wait, no more.
CREATE TABLE run_targets (
  run_id TEXT NOT NULL REFERENCES runs (id),
  digest INTEGER NOT NULL,
  PRIMARY KEY (run_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_targets_digest ON run_targets (digest, run_id);

-- The lanes that the entries of a container may come to, until all of them have runs of their own: whatever came after
-- it waits for them.
CREATE TABLE container_lanes (
  lane TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (lane, run_id)
) STRICT;
CREATE INDEX container_lanes_run ON container_lanes (run_id);

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
  state TEXT NOT NULL CHECK (state IN (:batch_states)),
  attempts INTEGER NOT NULL DEFAULT 0,
  answer TEXT,
  accepted_at TEXT,
  -- JSON, or null.
  outcome TEXT,
  -- The Idempotency-Key where it is not the operationId, and the earlier operation that delivered the batch.
  idempotency_key TEXT,
  repeats TEXT
) STRICT;
CREATE UNIQUE INDEX batches_place ON batches (run_id, place);
CREATE INDEX batches_repeated ON batches (accepted_at) WHERE repeats IS NOT NULL AND state = 'accepted';

-- Finished files.

-- Those that are still watched where they are now. Rows stand alone: a file that a person has the ledger forget is
-- watched to its end all the same.
CREATE TABLE finished_files (
  drop_name TEXT NOT NULL,
  -- Where the file is now.
  place TEXT NOT NULL,
  -- Where it came from.
  path TEXT NOT NULL,
  arrival_id INTEGER NOT NULL,
  run_id TEXT,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  identity TEXT,
  sha256 TEXT,
  -- JSON: what is still to be done to it.
  plan TEXT NOT NULL,
  -- 1 when other content was found, which goes back to the path.
  changed INTEGER NOT NULL DEFAULT 0,
  begun_at TEXT NOT NULL,
  ends_at TEXT NOT NULL,
  look_at TEXT NOT NULL,
  -- Since when a file that changed cannot go back to its path, where another file is.
  occupied_since TEXT,
  PRIMARY KEY (drop_name, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX finished_files_due ON finished_files (drop_name, look_at);
-- Those that wait at their own paths, where another version may come.
CREATE INDEX finished_files_waiting ON finished_files (drop_name) WHERE place = path;
CREATE INDEX finished_files_arrival ON finished_files (arrival_id);
CREATE INDEX finished_files_occupied ON finished_files (drop_name, place) WHERE occupied_since IS NOT NULL;

-- Folders that are or were archives of a drop.
CREATE TABLE archive_places (
  drop_name TEXT NOT NULL,
  folder TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (drop_name, folder)
) STRICT, WITHOUT ROWID;

-- History.

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
-- Finds the files of the last day that were replaced before they were finished.
CREATE INDEX events_replaced ON events (at) WHERE what = 'source.changed';

-- What stays of a file that a person had the ledger forget.
CREATE TABLE forgotten_files (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  drop_name TEXT NOT NULL,
  path TEXT NOT NULL,
  -- Base name of the path.
  name TEXT NOT NULL,
  said_by TEXT NOT NULL,
  why TEXT NOT NULL,
  -- Counts of arrivals, points and unanswered batches, and the ids of the runs.
  json TEXT NOT NULL
) STRICT;
CREATE INDEX forgotten_files_name ON forgotten_files (name, id);
CREATE INDEX forgotten_files_at ON forgotten_files (at);

-- Notes that the ledger was lost or replaced by an older copy: the last arrival that it knew then.
CREATE TABLE older_copies (
  -- The latest run that the spool knew.
  latest_run TEXT NOT NULL PRIMARY KEY,
  arrival_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Triggers and operators.

-- The last complete list of the triggers of each service, as the service listed them.
CREATE TABLE trigger_lists (
  source TEXT PRIMARY KEY,
  listed_at TEXT NOT NULL,
  -- A JSON array.
  triggers TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Drops and triggers that an operator paused.
CREATE TABLE pauses (
  kind TEXT NOT NULL CHECK (kind IN ('drop', 'trigger')),
  name TEXT NOT NULL,
  at TEXT NOT NULL,
  by TEXT NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
