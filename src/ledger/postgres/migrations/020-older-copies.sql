-- Notes that the ledger was lost or replaced by an older copy: the last arrival that it knew then.
CREATE TABLE older_copies (
  latest_run words NOT NULL PRIMARY KEY, -- the latest run that the spool knew
  arrival_id bigint NOT NULL
);
