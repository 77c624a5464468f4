-- Rules that claim files by name. A removed one stays, in state Deleted, for its history.
CREATE TABLE file_trigger (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT,
  file_type TEXT NOT NULL,
  ingestion_type TEXT NOT NULL,
  trigger_type TEXT NOT NULL,
  patterns TEXT NOT NULL, -- JSON array of { filterType, value }
  combination TEXT NOT NULL,
  state TEXT NOT NULL,
  token TEXT NOT NULL, -- GUID in lower case, unique by `file_trigger_token`
  mapping TEXT, -- name of the mapper
  metadata TEXT NOT NULL, -- JSON object
  creation_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  last_edit_ms INTEGER NOT NULL,
  edited_by TEXT NOT NULL
) STRICT;
CREATE INDEX file_trigger_by_account ON file_trigger(account_id);
CREATE INDEX file_trigger_by_token ON file_trigger(token);

-- Every token that a trigger has or had: a sender that still uses an old one never reaches another account's trigger.
CREATE TABLE file_trigger_token (
  token TEXT PRIMARY KEY,
  trigger_id INTEGER NOT NULL REFERENCES file_trigger(id)
) WITHOUT ROWID, STRICT;

CREATE TABLE file_trigger_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  trigger_id INTEGER NOT NULL REFERENCES file_trigger(id),
  at_ms INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  state TEXT NOT NULL,
  before TEXT, -- JSON object of the fields; null: the trigger was created
  after TEXT NOT NULL
) STRICT;
CREATE INDEX file_trigger_change_by_trigger ON file_trigger_change(trigger_id);
