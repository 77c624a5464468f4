-- The tables of the SQLite ledger under the same names, so that the same statements run on both, and those of many
-- nodes on one ledger.
-- Times are ISO 8601 in UTC with milliseconds; text has the order of code points, whatever the database's own is.
-- Lists of states (`:run_states`) and conditions on them (`:is_resting`) derive from src/gateway/states.ts.

CREATE DOMAIN words AS text COLLATE "C";

-- Files at the drops.

CREATE TABLE arrivals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  drop_name words NOT NULL,
  path words NOT NULL,
  -- Base name of the path.
  name words NOT NULL,
  size bigint NOT NULL,
  mtime words NOT NULL,
  sha256 words,
  state words NOT NULL CHECK (state IN (:arrival_states)),
  reason words NOT NULL,
  seen_at words NOT NULL,
  changed_at words NOT NULL,
  gone_at words,
  -- The latest run.
  run_id words,
  -- The container whose entry it is.
  parent_id bigint REFERENCES arrivals (id),
  -- Since which complete listing a file was not shown: it has gone when the next complete listing does not show it
  -- either.
  missing_since words,
  -- When something of its lane first had to wait for a file that was seen earlier and whose folder could not be listed:
  -- once, and not for ever.
  awaited_since words,
  -- Of an unmatched file: no person has to see to it, since its drop expects such files, or its trigger is paused or
  -- not known yet.
  expected integer NOT NULL DEFAULT 0
);

-- One arrival lies at a path at a time.
CREATE UNIQUE INDEX arrivals_lying ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NULL;
CREATE UNIQUE INDEX arrivals_entry ON arrivals (parent_id, path) WHERE parent_id IS NOT NULL;
CREATE INDEX arrivals_name ON arrivals (name);
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
CREATE FUNCTION entries_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM arrivals WHERE parent_id = NEW.id) THEN RETURN NULL; END IF;
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

-- Drops.

-- Those that were looked through to the end at least once.
CREATE TABLE drops (
  name words PRIMARY KEY,
  first_listed_at words NOT NULL
);

-- Until the first listing of a drop is complete: folders that were listed in full (1), and those that were seen in them
-- and were not (0).
CREATE TABLE drop_folders (
  drop_name words NOT NULL,
  folder words NOT NULL,
  listed integer NOT NULL,
  PRIMARY KEY (drop_name, folder)
);

-- The longest pause in which a file of the drop did not change, and then grew.
CREATE TABLE growth_pauses (
  drop_name words PRIMARY KEY,
  path words NOT NULL,
  pause_ms bigint NOT NULL,
  at words NOT NULL
);

-- Host keys of servers that a person approved, for all nodes.
CREATE TABLE approved_keys (
  drop_name words NOT NULL,
  -- Of a known_hosts file: a comment and an entry.
  lines words NOT NULL,
  approved_at words NOT NULL,
  PRIMARY KEY (drop_name, lines)
);

-- Runs and their batches.

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
  state words NOT NULL CHECK (state IN (:run_states)),
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
  changed_at words NOT NULL,
  -- The session that works on the run, or did last; and the name of its node, for people.
  owner bigint,
  node words,
  -- JSON of how long the service could be asked about the run, and how long not; null until that was counted.
  confirm_clock words,
  -- Who sent the file, and what its operations are named after: apart from the binding, which runs share.
  sender words,
  operation_prefix words,
  -- What the mapping found out about the file: a JSON array, or null for nothing.
  findings words
);

ALTER TABLE arrivals ADD FOREIGN KEY (run_id) REFERENCES runs (id) DEFERRABLE INITIALLY IMMEDIATE;
CREATE INDEX runs_arrival ON runs (arrival_id);
CREATE INDEX runs_binding ON runs (binding_id, id);
CREATE INDEX runs_owner ON runs (owner) WHERE owner IS NOT NULL;
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

-- A run that waits for a person or for the structure is nobody's: any node may take it then.
CREATE FUNCTION run_rests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.owner := NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER run_rests BEFORE UPDATE OF state ON runs FOR EACH ROW
  WHEN (NEW.state IN (:nobodys_states) AND OLD.state <> NEW.state)
  EXECUTE FUNCTION run_rests();

-- Lanes in which a run is held, or was. Whoever lets such a run go on, and whoever begins to deliver a later one,
-- changes the row of the lane: of two nodes that do so at the same moment without seeing each other, the server has one
-- do it again.
CREATE TABLE lane_turns (
  lane words PRIMARY KEY,
  turns bigint NOT NULL DEFAULT 0
);

CREATE FUNCTION lane_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'held' THEN
    INSERT INTO lane_turns (lane) VALUES (NEW.lane) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE lane_turns SET turns = turns + 1 WHERE lane = NEW.lane;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER lane_turn AFTER UPDATE OF state ON runs FOR EACH ROW
  WHEN (OLD.state <> NEW.state AND (NEW.state IN ('held', 'delivering') OR OLD.state = 'held'))
  EXECUTE FUNCTION lane_turn();

-- Digests of the targets of runs: for the order of lanes, and so that a replay finds the later runs that it would
-- overwrite. An equal digest of unequal targets costs a wait, no more.
CREATE TABLE run_targets (
  run_id words NOT NULL REFERENCES runs (id),
  digest bigint NOT NULL,
  PRIMARY KEY (run_id, digest)
);
CREATE INDEX run_targets_digest ON run_targets (digest, run_id);

-- The lanes that the entries of a container may come to, until all of them have runs of their own: whatever came after
-- it waits for them.
CREATE TABLE container_lanes (
  lane words NOT NULL,
  run_id words NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (lane, run_id)
);
CREATE INDEX container_lanes_run ON container_lanes (run_id);

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
  state words NOT NULL CHECK (state IN (:batch_states)),
  attempts bigint NOT NULL DEFAULT 0,
  answer words,
  accepted_at words,
  -- JSON, or null.
  outcome words,
  -- The Idempotency-Key where it is not the operationId, and the earlier operation that delivered the batch.
  idempotency_key words,
  repeats words
);
CREATE UNIQUE INDEX batches_place ON batches (run_id, place);
CREATE INDEX batches_repeated ON batches (accepted_at) WHERE repeats IS NOT NULL AND state = 'accepted';

-- Finished files.

-- Those that are still watched where they are now. Rows stand alone: a file that a person has the ledger forget is
-- watched to its end all the same.
CREATE TABLE finished_files (
  drop_name words NOT NULL,
  -- Where the file is now.
  place words NOT NULL,
  -- Where it came from.
  path words NOT NULL,
  arrival_id bigint NOT NULL,
  run_id words,
  size bigint NOT NULL,
  mtime words NOT NULL,
  identity words,
  sha256 words,
  -- JSON: what is still to be done to it.
  plan words NOT NULL,
  -- 1 when other content was found, which goes back to the path.
  changed bigint NOT NULL DEFAULT 0,
  begun_at words NOT NULL,
  ends_at words NOT NULL,
  look_at words NOT NULL,
  -- Since when a file that changed cannot go back to its path, where another file is.
  occupied_since words,
  PRIMARY KEY (drop_name, place)
);
CREATE INDEX finished_files_due ON finished_files (drop_name, look_at);
-- Those that wait at their own paths, where another version may come.
CREATE INDEX finished_files_waiting ON finished_files (drop_name) WHERE place = path;
CREATE INDEX finished_files_arrival ON finished_files (arrival_id);
CREATE INDEX finished_files_occupied ON finished_files (drop_name, place) WHERE occupied_since IS NOT NULL;

-- Folders that are or were archives of a drop.
CREATE TABLE archive_places (
  drop_name words NOT NULL,
  folder words NOT NULL,
  since words NOT NULL,
  PRIMARY KEY (drop_name, folder)
);

-- History.

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
-- Finds the files of the last day that were replaced before they were finished.
CREATE INDEX events_replaced ON events (at) WHERE what = 'source.changed';

-- What stays of a file that a person had the ledger forget.
CREATE TABLE forgotten_files (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at words NOT NULL,
  drop_name words NOT NULL,
  path words NOT NULL,
  -- Base name of the path.
  name words NOT NULL,
  said_by words NOT NULL,
  why words NOT NULL,
  -- Counts of arrivals, points and unanswered batches, and the ids of the runs.
  json words NOT NULL
);
CREATE INDEX forgotten_files_name ON forgotten_files (name, id);
CREATE INDEX forgotten_files_at ON forgotten_files (at);

-- Notes that the ledger was lost or replaced by an older copy: the last arrival that it knew then.
CREATE TABLE older_copies (
  -- The latest run that the spool knew.
  latest_run words NOT NULL PRIMARY KEY,
  arrival_id bigint NOT NULL
);

-- Triggers and operators.

-- The last complete list of the triggers of each service, as the service listed them.
CREATE TABLE trigger_lists (
  source words PRIMARY KEY,
  listed_at words NOT NULL,
  -- A JSON array.
  triggers words NOT NULL
);

-- Drops and triggers that an operator paused.
CREATE TABLE pauses (
  kind words NOT NULL CHECK (kind IN ('drop', 'trigger')),
  name words NOT NULL,
  at words NOT NULL,
  by words NOT NULL,
  why words NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Many gateways on one ledger. Each start of one is a session, whose number is the fence of all that it does: once a
-- session has ended, nothing of it is written any more. Times are of this server's clock.

CREATE TABLE sessions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node words NOT NULL,
  host words NOT NULL,
  pid bigint NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Others may end it after this.
  until timestamptz NOT NULL,
  ended_at timestamptz
);
-- A node is one process at a time.
CREATE UNIQUE INDEX sessions_live ON sessions (node) WHERE ended_at IS NULL;

CREATE TABLE drop_holders (
  drop_name words PRIMARY KEY,
  session bigint NOT NULL REFERENCES sessions (id)
);

-- HG001: another node has it.
CREATE FUNCTION assert_run(asked text, own bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  holder text;
BEGIN
  SELECT sessions.node INTO holder FROM runs JOIN sessions ON sessions.id = runs.owner
    WHERE runs.id = asked AND sessions.ended_at IS NULL AND runs.owner IS DISTINCT FROM own;
  IF FOUND THEN RAISE EXCEPTION 'the node % works on run %', holder, asked USING ERRCODE = 'HG001'; END IF;
END $$;

CREATE FUNCTION assert_drop(asked text, own bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF own IS NOT NULL AND NOT EXISTS (SELECT 1 FROM drop_holders WHERE drop_name = asked AND session = own) THEN
    RAISE EXCEPTION 'another node polls the drop %', asked USING ERRCODE = 'HG001';
  END IF;
END $$;

-- HG002: the session has ended. Asked last in each transaction that wrote something. The lock is refused while somebody
-- ends the session, and whoever ends it waits for the transactions that have it; renewing it goes on beside both.
CREATE FUNCTION assert_session(own bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF own IS NULL OR pg_current_xact_id_if_assigned() IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM sessions WHERE id = own AND ended_at IS NULL FOR KEY SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'the lease of this node has lapsed' USING ERRCODE = 'HG002'; END IF;
END $$;

-- Bytes that every node must be able to have, and that no drop keeps: bodies that an HTTP intake took, versions of
-- mappers, lookup tables. They lie in pieces, so that neither a node nor this server holds one as a whole.

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
