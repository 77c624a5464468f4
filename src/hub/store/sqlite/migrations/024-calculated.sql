-- Calculated variables: what each reads, what is due, and the runs that calculate it.
ALTER TABLE variable ADD COLUMN calculated TEXT; -- JSON object with its formulas; null: a plain variable
CREATE INDEX variable_calculated ON variable(account_id, id) WHERE calculated IS NOT NULL;

CREATE TABLE calculated_input (
  calculated_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  variable_id INTEGER NOT NULL REFERENCES variable(id),
  account_id INTEGER NOT NULL REFERENCES account(id),
  is_trigger INTEGER NOT NULL, -- its new points make the calculated variable due
  PRIMARY KEY (calculated_id, variable_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calculated_input_by_variable ON calculated_input(variable_id);
CREATE INDEX calculated_input_by_account ON calculated_input(account_id);

-- Fields of forms that formulas read; a field may go before its formula.
CREATE TABLE calculated_field (
  calculated_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  entity TEXT NOT NULL CHECK (entity IN ('site', 'source')),
  entity_id INTEGER NOT NULL,
  field_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL REFERENCES account(id),
  PRIMARY KEY (calculated_id, entity, entity_id, field_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calculated_field_by_entity ON calculated_field(account_id, entity, entity_id);

CREATE TABLE calculation_due (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  input_id INTEGER, -- whose dates these are; null: those of the calculated variable
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL, -- included
  marked_ms INTEGER NOT NULL, -- the oldest mark in it
  cause TEXT NOT NULL CHECK (cause IN ('input', 'slice', 'definition', 'removal', 'force'))
) STRICT;
CREATE INDEX calculation_due_by_variable ON calculation_due(variable_id);
CREATE INDEX calculation_due_by_account ON calculation_due(account_id, id);

CREATE TABLE calculation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'storing', 'done', 'failed')),
  from_ms INTEGER NOT NULL, -- what was due
  to_ms INTEGER NOT NULL,
  due TEXT NOT NULL, -- JSON array of the intervals with their inputs
  default_version TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_ms INTEGER NOT NULL, -- until when the node owns it
  marked_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER,
  cursor_ms INTEGER, -- parts before it were handed over
  part_ms INTEGER, -- end of the part in work, included
  end_ms INTEGER, -- of the widened window; null until it is known
  sent INTEGER NOT NULL DEFAULT 0, -- operations
  parts INTEGER, -- of all; null until it is known
  applied INTEGER NOT NULL DEFAULT 0, -- of them
  outputs INTEGER NOT NULL DEFAULT 0, -- rows
  stored INTEGER NOT NULL DEFAULT 0,
  replaced INTEGER NOT NULL DEFAULT 0,
  discarded INTEGER NOT NULL DEFAULT 0,
  dropped INTEGER NOT NULL DEFAULT 0, -- rows outside of the window, or without a value
  attempts INTEGER NOT NULL DEFAULT 0,
  message TEXT
) STRICT;
CREATE INDEX calculation_by_variable ON calculation(variable_id, id);
CREATE INDEX calculation_by_account ON calculation(account_id, id);
CREATE INDEX calculation_open ON calculation(state, lease_ms) WHERE state IN ('running', 'waiting', 'storing');
