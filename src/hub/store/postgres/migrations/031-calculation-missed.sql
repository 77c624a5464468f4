-- Dates that a failed calculation left as they were; they are due again with the next success of the variable.
CREATE TABLE calculation_missed (
  variable_id BIGINT PRIMARY KEY REFERENCES variable(id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL REFERENCES account(id),
  from_ms BIGINT NOT NULL,
  to_ms BIGINT NOT NULL, -- included
  failed_ms BIGINT NOT NULL -- the first failure
);
