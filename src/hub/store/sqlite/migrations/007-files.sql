-- Files that the service took. Their bytes are apart, under their digest, which files of equal content share.
CREATE TABLE stored_file (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL, -- with its folders
  base_name TEXT NOT NULL, -- without them
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  kind TEXT NOT NULL,
  content_type TEXT NOT NULL,
  tags TEXT NOT NULL, -- JSON array
  site_id INTEGER REFERENCES site(id) ON DELETE SET NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL, -- name of the user
  via TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  trigger_id INTEGER, -- stays when the trigger is removed
  run TEXT,
  scan TEXT NOT NULL,
  updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX stored_file_by_account ON stored_file(account_id, id);
CREATE INDEX stored_file_by_digest ON stored_file(sha256);
CREATE INDEX stored_file_by_site ON stored_file(site_id);
CREATE INDEX stored_file_received ON stored_file(account_id, id) WHERE state = 'received';
CREATE INDEX stored_file_unscanned ON stored_file(id) WHERE scan = 'waiting';

-- Bytes of all files of an account.
CREATE TABLE stored_bytes (
  account_id INTEGER PRIMARY KEY REFERENCES account(id),
  bytes INTEGER NOT NULL
) STRICT;

-- By this id the folder of the files knows its store.
CREATE TABLE stored_file_folder (
  one INTEGER PRIMARY KEY,
  id TEXT NOT NULL
) STRICT;
