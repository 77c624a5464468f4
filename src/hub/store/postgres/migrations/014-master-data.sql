-- What became of the rows of files of master data.
CREATE TABLE master_data_report (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  file_id BIGINT NOT NULL REFERENCES stored_file(id) ON DELETE CASCADE,
  file_name TEXT NOT NULL, -- of the file itself, or of one in the container that it is
  run TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  dry_run BOOLEAN NOT NULL,
  applied BOOLEAN NOT NULL,
  created BIGINT NOT NULL, -- rows, as the next three
  changed BIGINT NOT NULL,
  unchanged BIGINT NOT NULL,
  refused BIGINT NOT NULL,
  UNIQUE (file_id, file_name, run)
);

CREATE TABLE master_data_report_part (
  report_id BIGINT NOT NULL REFERENCES master_data_report(id) ON DELETE CASCADE,
  part BIGINT NOT NULL,
  items TEXT NOT NULL, -- JSON array of rows
  PRIMARY KEY (report_id, part)
);
