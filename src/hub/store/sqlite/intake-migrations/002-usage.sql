-- What accounts with a quota pushed on each day (UTC).
CREATE TABLE usage (
  account_id INTEGER NOT NULL,
  day TEXT NOT NULL, -- 2026-03-01
  points INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (account_id, day)
) WITHOUT ROWID, STRICT;
