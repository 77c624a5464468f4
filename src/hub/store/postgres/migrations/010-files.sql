-- Files that the service took. Their bytes are apart, under their digest, which files of equal content share.
CREATE TABLE stored_file (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL, -- with its folders
  base_name TEXT NOT NULL, -- without them
  bytes BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  kind TEXT NOT NULL,
  content_type TEXT NOT NULL,
  tags JSON NOT NULL, -- array
  site_id BIGINT REFERENCES site(id) ON DELETE SET NULL,
  created_ms BIGINT NOT NULL,
  created_by TEXT NOT NULL, -- name of the user
  via TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  trigger_id BIGINT, -- stays when the trigger is removed
  run TEXT,
  scan TEXT NOT NULL,
  updated_ms BIGINT NOT NULL
);
CREATE INDEX stored_file_by_account ON stored_file(account_id, id);
CREATE INDEX stored_file_by_digest ON stored_file(sha256);
CREATE INDEX stored_file_by_site ON stored_file(site_id);
CREATE INDEX stored_file_received ON stored_file(account_id, id) WHERE state = 'received';
CREATE INDEX stored_file_unscanned ON stored_file(id) WHERE scan = 'waiting';

-- Bytes of all files of an account.
CREATE TABLE stored_bytes (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  bytes BIGINT NOT NULL
);

-- By this id the folder of the files knows its store.
CREATE TABLE stored_file_folder (
  one BIGINT PRIMARY KEY,
  id TEXT NOT NULL
);
