-- What stays of a file that a person had the ledger forget.
CREATE TABLE forgotten_files (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  drop_name TEXT NOT NULL,
  path TEXT NOT NULL,
  -- Base name of the path.
  name TEXT NOT NULL,
  said_by TEXT NOT NULL,
  why TEXT NOT NULL,
  -- Counts of arrivals, points and unanswered batches, and the ids of the runs.
  json TEXT NOT NULL
) STRICT;
CREATE INDEX forgotten_files_name ON forgotten_files (name, id);
CREATE INDEX forgotten_files_at ON forgotten_files (at);
