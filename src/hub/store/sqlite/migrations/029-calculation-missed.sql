-- Dates that a failed calculation left as they were; they are due again with the next success of the variable.
CREATE TABLE calculation_missed (
  variable_id INTEGER PRIMARY KEY REFERENCES variable(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES account(id),
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL, -- included
  failed_ms INTEGER NOT NULL -- the first failure
) STRICT;
