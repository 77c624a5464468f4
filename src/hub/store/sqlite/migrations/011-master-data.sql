-- What became of the rows of files of master data.
CREATE TABLE master_data_report (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  file_id INTEGER NOT NULL REFERENCES stored_file(id) ON DELETE CASCADE,
  file_name TEXT NOT NULL, -- of the file itself, or of one in the container that it is
  run TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  dry_run INTEGER NOT NULL,
  applied INTEGER NOT NULL,
  created INTEGER NOT NULL, -- rows, as the next three
  changed INTEGER NOT NULL,
  unchanged INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  UNIQUE (file_id, file_name, run)
) STRICT;

CREATE TABLE master_data_report_part (
  report_id INTEGER NOT NULL REFERENCES master_data_report(id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  items TEXT NOT NULL, -- JSON array of rows
  PRIMARY KEY (report_id, part)
) STRICT;
