-- Calculated variables: what each reads, what is due, and the runs that calculate it.
ALTER TABLE variable ADD COLUMN calculated JSON; -- its formulas; null: a plain variable
CREATE INDEX variable_calculated ON variable(account_id, id) WHERE calculated IS NOT NULL;

CREATE TABLE calculated_input (
  calculated_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  variable_id BIGINT NOT NULL REFERENCES variable(id),
  account_id BIGINT NOT NULL REFERENCES account(id),
  is_trigger BOOLEAN NOT NULL, -- its new points make the calculated variable due
  PRIMARY KEY (calculated_id, variable_id)
);
CREATE INDEX calculated_input_by_variable ON calculated_input(variable_id);
CREATE INDEX calculated_input_by_account ON calculated_input(account_id);

-- Fields of forms that formulas read; a field may go before its formula.
CREATE TABLE calculated_field (
  calculated_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  entity TEXT NOT NULL CHECK (entity IN ('site', 'source')),
  entity_id BIGINT NOT NULL,
  field_id BIGINT NOT NULL,
  account_id BIGINT NOT NULL REFERENCES account(id),
  PRIMARY KEY (calculated_id, entity, entity_id, field_id)
);
CREATE INDEX calculated_field_by_entity ON calculated_field(account_id, entity, entity_id);

CREATE TABLE calculation_due (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  variable_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  input_id BIGINT, -- whose dates these are; null: those of the calculated variable
  from_ms BIGINT NOT NULL,
  to_ms BIGINT NOT NULL, -- included
  marked_ms BIGINT NOT NULL, -- the oldest mark in it
  cause TEXT NOT NULL CHECK (cause IN ('input', 'slice', 'definition', 'removal', 'force'))
);
CREATE INDEX calculation_due_by_variable ON calculation_due(variable_id);
CREATE INDEX calculation_due_by_account ON calculation_due(account_id, id);

CREATE TABLE calculation (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  variable_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'storing', 'done', 'failed')),
  from_ms BIGINT NOT NULL, -- what was due
  to_ms BIGINT NOT NULL,
  due TEXT NOT NULL, -- JSON array of the intervals with their inputs
  default_version TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_ms BIGINT NOT NULL, -- until when the node owns it
  marked_ms BIGINT NOT NULL,
  started_ms BIGINT NOT NULL,
  finished_ms BIGINT,
  cursor_ms BIGINT, -- parts before it were handed over
  part_ms BIGINT, -- end of the part in work, included
  end_ms BIGINT, -- of the widened window; null until it is known
  sent BIGINT NOT NULL DEFAULT 0, -- operations
  parts BIGINT, -- of all; null until it is known
  applied BIGINT NOT NULL DEFAULT 0, -- of them
  outputs BIGINT NOT NULL DEFAULT 0, -- rows
  stored BIGINT NOT NULL DEFAULT 0,
  replaced BIGINT NOT NULL DEFAULT 0,
  discarded BIGINT NOT NULL DEFAULT 0,
  dropped BIGINT NOT NULL DEFAULT 0, -- rows outside of the window, or without a value
  attempts BIGINT NOT NULL DEFAULT 0,
  message TEXT
);
CREATE INDEX calculation_by_variable ON calculation(variable_id, id);
CREATE INDEX calculation_by_account ON calculation(account_id, id);
CREATE INDEX calculation_open ON calculation(state, lease_ms) WHERE state IN ('running', 'waiting', 'storing');

-- Whose outputs the operation stores; null: a push.
ALTER TABLE operation ADD COLUMN calculation_id BIGINT;
