-- What stays of a file that a person had the ledger forget.
CREATE TABLE forgotten_files (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at words NOT NULL,
  drop_name words NOT NULL,
  path words NOT NULL,
  -- Base name of the path.
  name words NOT NULL,
  said_by words NOT NULL,
  why words NOT NULL,
  -- Counts of arrivals, points and unanswered batches, and the ids of the runs.
  json words NOT NULL
);
CREATE INDEX forgotten_files_name ON forgotten_files (name, id);
CREATE INDEX forgotten_files_at ON forgotten_files (at);
