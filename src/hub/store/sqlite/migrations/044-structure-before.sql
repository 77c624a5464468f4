-- How what a file of master data changes in slices was before: parts of a plan (JSON) that change it back.
CREATE TABLE structure_before (
  account_id INTEGER NOT NULL REFERENCES account(id),
  part INTEGER NOT NULL,
  plan TEXT NOT NULL,
  PRIMARY KEY (account_id, part)
) STRICT;
