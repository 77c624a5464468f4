-- Many gateways on one ledger. Each start of one is a session, whose number is the fence of all that it does: once a session has
-- ended, nothing of it is written any more. Times are of this server's clock.
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

-- The session that works on a run, or did last; and the name of its node, for people.
ALTER TABLE runs ADD COLUMN owner bigint, ADD COLUMN node words;
CREATE INDEX runs_owner ON runs (owner) WHERE owner IS NOT NULL;

-- A run that waits for a person or for the structure is nobody's.
CREATE FUNCTION run_rests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.owner := NULL;
  RETURN NEW;
END $$;
CREATE TRIGGER run_rests BEFORE UPDATE OF state ON runs FOR EACH ROW
  WHEN (NEW.state IN ('held', 'quarantined', 'cancelled') AND OLD.state <> NEW.state)
  EXECUTE FUNCTION run_rests();

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

-- HG002: the session has ended. Asked last in each transaction that wrote something. The lock is refused while somebody ends the
-- session, and whoever ends it waits for the transactions that have it; renewing it goes on beside both.
CREATE FUNCTION assert_session(own bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF own IS NULL OR pg_current_xact_id_if_assigned() IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM sessions WHERE id = own AND ended_at IS NULL FOR KEY SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'the lease of this node has lapsed' USING ERRCODE = 'HG002'; END IF;
END $$;
