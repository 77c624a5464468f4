-- Counts the changes of an account's structure, so that what was read of it is known to be current.
CREATE TABLE structure_change (
  account_id INTEGER PRIMARY KEY REFERENCES account(id),
  changes INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO structure_change (account_id) SELECT id FROM account;
