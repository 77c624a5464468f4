-- The last complete list of the triggers of each service, as the service listed them.
CREATE TABLE trigger_lists (
  source TEXT PRIMARY KEY,
  listed_at TEXT NOT NULL,
  triggers TEXT NOT NULL -- JSON array
) STRICT, WITHOUT ROWID;
