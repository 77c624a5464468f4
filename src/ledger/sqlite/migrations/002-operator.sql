-- What operators order: runs done again, drops and triggers that pause.

-- JSON of what the run does again and how, or null.
ALTER TABLE runs ADD COLUMN replay TEXT;

CREATE TABLE pauses (
  kind TEXT NOT NULL CHECK (kind IN ('drop', 'trigger')),
  name TEXT NOT NULL,
  at TEXT NOT NULL,
  by TEXT NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Targets of delivered runs stay, so that a replay finds the later runs that it would overwrite.
CREATE INDEX run_targets_digest ON run_targets (digest, run_id);
