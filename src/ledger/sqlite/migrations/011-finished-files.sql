-- Files that were finished and are still watched where they are now. Rows stand alone: a file that a person has the ledger forget is
-- watched to its end all the same.
CREATE TABLE finished_files (
  drop_name TEXT NOT NULL,
  -- Where the file is now.
  place TEXT NOT NULL,
  -- Where it came from.
  path TEXT NOT NULL,
  arrival_id INTEGER NOT NULL,
  run_id TEXT,
  size INTEGER NOT NULL,
  mtime TEXT NOT NULL,
  identity TEXT,
  sha256 TEXT,
  -- JSON: what is still to be done to it.
  plan TEXT NOT NULL,
  -- 1 when other content was found, which goes back to the path.
  changed INTEGER NOT NULL DEFAULT 0,
  begun_at TEXT NOT NULL,
  ends_at TEXT NOT NULL,
  look_at TEXT NOT NULL,
  PRIMARY KEY (drop_name, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX finished_files_due ON finished_files (drop_name, look_at);
-- Those that wait at their own paths, where another version may come.
CREATE INDEX finished_files_waiting ON finished_files (drop_name) WHERE place = path;
CREATE INDEX finished_files_arrival ON finished_files (arrival_id);

-- Folders that are or were archives of a drop.
CREATE TABLE archive_places (
  drop_name TEXT NOT NULL,
  folder TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (drop_name, folder)
) STRICT, WITHOUT ROWID;

-- The longest pause in which a file of the drop did not change, and then grew.
CREATE TABLE growth_pauses (
  drop_name TEXT PRIMARY KEY,
  path TEXT NOT NULL,
  pause_ms INTEGER NOT NULL,
  at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
