-- Files that were finished and are still watched where they are now. Rows stand alone: a file that a person has the ledger forget is
-- watched to its end all the same.
CREATE TABLE finished_files (
  drop_name words NOT NULL,
  -- Where the file is now.
  place words NOT NULL,
  -- Where it came from.
  path words NOT NULL,
  arrival_id bigint NOT NULL,
  run_id words,
  size bigint NOT NULL,
  mtime words NOT NULL,
  identity words,
  sha256 words,
  -- JSON: what is still to be done to it.
  plan words NOT NULL,
  -- 1 when other content was found, which goes back to the path.
  changed bigint NOT NULL DEFAULT 0,
  begun_at words NOT NULL,
  ends_at words NOT NULL,
  look_at words NOT NULL,
  PRIMARY KEY (drop_name, place)
);
CREATE INDEX finished_files_due ON finished_files (drop_name, look_at);
-- Those that wait at their own paths, where another version may come.
CREATE INDEX finished_files_waiting ON finished_files (drop_name) WHERE place = path;
CREATE INDEX finished_files_arrival ON finished_files (arrival_id);

-- Folders that are or were archives of a drop.
CREATE TABLE archive_places (
  drop_name words NOT NULL,
  folder words NOT NULL,
  since words NOT NULL,
  PRIMARY KEY (drop_name, folder)
);

-- The longest pause in which a file of the drop did not change, and then grew.
CREATE TABLE growth_pauses (
  drop_name words PRIMARY KEY,
  path words NOT NULL,
  pause_ms bigint NOT NULL,
  at words NOT NULL
);
