-- Accounts are walls: every entity of the structure carries its account.
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;

CREATE TABLE client (
  id TEXT PRIMARY KEY,
  name TEXT,
  secret_hash TEXT NOT NULL,
  scopes TEXT, -- JSON array; null: all
  enabled INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE user (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  username TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  roles TEXT NOT NULL, -- JSON array
  accounts TEXT NOT NULL, -- JSON array, the default first
  last_account_id INTEGER,
  enabled INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE signing_key (
  kid TEXT PRIMARY KEY,
  private_jwk TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE site (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  type_id INTEGER NOT NULL,
  time_zone_id TEXT NOT NULL,
  street TEXT,
  postal_code TEXT,
  city TEXT,
  country TEXT
) STRICT;
CREATE INDEX site_by_account ON site(account_id);

CREATE TABLE source (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  site_id INTEGER NOT NULL REFERENCES site(id),
  name TEXT NOT NULL,
  serial_number TEXT,
  ean TEXT,
  meter_number TEXT,
  source_type_id INTEGER NOT NULL,
  energy_type_id INTEGER,
  energy_usage_id INTEGER,
  gateway_type_id INTEGER,
  time_zone_id TEXT, -- null: the site's
  description TEXT,
  localisation TEXT,
  meter_address TEXT,
  tags TEXT NOT NULL, -- JSON array
  client_data TEXT, -- JSON object
  state TEXT NOT NULL DEFAULT 'Enabled'
) STRICT;
CREATE INDEX source_by_site ON source(account_id, site_id);
CREATE INDEX source_by_serial_number ON source(account_id, serial_number);
CREATE INDEX source_by_ean ON source(account_id, ean);
CREATE INDEX source_by_meter_number ON source(account_id, meter_number);
CREATE INDEX source_by_name ON source(account_id, name);

CREATE TABLE variable (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  source_id INTEGER NOT NULL REFERENCES source(id),
  name TEXT NOT NULL,
  variable_type_id INTEGER NOT NULL,
  unit_id INTEGER NOT NULL,
  granularity INTEGER,
  granularity_time_base INTEGER,
  quantity_type INTEGER,
  aggregate INTEGER,
  mapping_config TEXT,
  divider REAL,
  tags TEXT NOT NULL, -- JSON array
  is_versioned INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX variable_by_source ON variable(source_id, mapping_config);
CREATE INDEX variable_by_type ON variable(account_id, variable_type_id);

-- The latest value of each point, versioned or not, so that ordinary reads touch one table.
CREATE TABLE point (
  variable_id INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  value REAL NOT NULL,
  version TEXT,
  tags TEXT, -- JSON object: the reading's own tags, with the VersionTag under `version`
  batch_tags TEXT, -- JSON object: the tags of the element
  PRIMARY KEY (variable_id, at_ms)
) WITHOUT ROWID, STRICT;

-- All versions of points of versioned variables, the latest included.
CREATE TABLE point_version (
  variable_id INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  version_us INTEGER NOT NULL, -- VersionTimestamp, microseconds; strictly increasing through the whole store
  value REAL NOT NULL,
  version TEXT,
  tags TEXT,
  batch_tags TEXT,
  PRIMARY KEY (variable_id, at_ms, version_us)
) WITHOUT ROWID, STRICT;

-- Written in the transaction that applies an operation: its presence says that the operation was applied.
CREATE TABLE outcome (
  intake_id TEXT NOT NULL, -- the queue that numbered it
  seq INTEGER NOT NULL,
  received INTEGER NOT NULL,
  stored INTEGER NOT NULL,
  replaced INTEGER NOT NULL,
  discarded TEXT NOT NULL, -- JSON array of { target, reason, count }
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  PRIMARY KEY (intake_id, seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX outcome_by_finish ON outcome(finished_ms);

CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
