-- The store of the hub: all but the queue of operations, which is a file of its own (`intake-migrations/`).

-- == Accounts and clients ==

-- Accounts are walls: every entity of the structure carries its account.
CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;

-- Counts the changes of an account's structure, so that its readers know whether they read the current one.
CREATE TABLE structure_change (
  account_id INTEGER PRIMARY KEY REFERENCES account(id),
  changes INTEGER NOT NULL DEFAULT 0,
  held TEXT -- JSON: a change that goes in slices, and where it is; null: none
) STRICT;

-- Parts of a plan (JSON) that changes back what a file of master data changes in slices.
CREATE TABLE structure_before (
  account_id INTEGER NOT NULL REFERENCES account(id),
  part INTEGER NOT NULL,
  plan TEXT NOT NULL,
  PRIMARY KEY (account_id, part)
) STRICT;

-- Numbers that the store counts.
CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE client (
  id TEXT PRIMARY KEY,
  name TEXT,
  secret_hash TEXT NOT NULL,
  scopes TEXT, -- JSON array; null: all
  enabled INTEGER NOT NULL DEFAULT 1
) STRICT;

-- Keys that sign access tokens.
CREATE TABLE signing_key (
  kid TEXT PRIMARY KEY,
  private_jwk TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

-- == People ==

-- Users. A user has roles in each account that it may enter, and what people change outlives the configuration.
CREATE TABLE hub_user (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  username TEXT NOT NULL UNIQUE,
  username_key TEXT UNIQUE, -- the name without regard to case; null: another user has it
  email TEXT,
  email_key TEXT UNIQUE,
  proven_ms INTEGER, -- when the owner of the address proved to be the user; null: another person may know the password
  first_name TEXT,
  last_name TEXT,
  state TEXT NOT NULL CHECK (state IN ('Active', 'Invited', 'Inactive')),
  password_hash TEXT, -- null: none was given yet, or another service knows the user
  must_change_password INTEGER NOT NULL DEFAULT 0,
  temporary_until_ms INTEGER, -- end of a temporary password
  token_generation INTEGER NOT NULL DEFAULT 0, -- tokens and sessions of another one have ended
  last_account_id INTEGER,
  totp_secret TEXT,
  totp_confirmed_ms INTEGER, -- null: the second factor is not asked for yet
  totp_used_step INTEGER, -- the last one that was taken
  origin TEXT NOT NULL CHECK (origin IN ('configuration', 'people')),
  seed_password_hash TEXT, -- of the configuration when it was applied last
  seed_facts TEXT -- JSON of the rest of it
) STRICT;

CREATE TABLE membership (
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES account(id),
  place INTEGER NOT NULL, -- the first is the default account until one is touched
  roles TEXT NOT NULL, -- JSON array
  business_id TEXT,
  origin TEXT NOT NULL CHECK (origin IN ('configuration', 'people')),
  PRIMARY KEY (user_id, account_id),
  UNIQUE (account_id, business_id)
) WITHOUT ROWID, STRICT;
CREATE INDEX membership_by_account ON membership(account_id, user_id);

-- Claims of a user in an account.
CREATE TABLE user_claim (
  user_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  claim_type TEXT NOT NULL,
  claim_value TEXT NOT NULL,
  PRIMARY KEY (user_id, account_id, claim_type),
  FOREIGN KEY (user_id, account_id) REFERENCES membership(user_id, account_id) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;

-- Only its SHA-256 is kept: the token itself is shown once.
CREATE TABLE api_token (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL, -- JSON array
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  last_used_ms INTEGER
) STRICT;
CREATE INDEX api_token_by_user ON api_token(user_id);

-- Sessions of browsers.
CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  token_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the cookie
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL,
  impersonator_id INTEGER, -- the user who acts as user_id
  generation TEXT NOT NULL, -- of the password that it was opened with
  second_factor INTEGER NOT NULL, -- whether it was given
  created_ms INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  address TEXT NOT NULL,
  agent TEXT NOT NULL
) STRICT;
CREATE INDEX session_by_user ON session(user_id);
-- Sessions are listed and counted by the person who opened them.
CREATE INDEX session_by_opener ON session((COALESCE(impersonator_id, user_id)));

-- Codes with which a user signs in who has lost the device of the second factor.
CREATE TABLE recovery_code (
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
) STRICT, WITHOUT ROWID;

-- The identity of a user at a provider of single sign-on, which never gives a subject to another person.
CREATE TABLE external_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  linked_ms INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) WITHOUT ROWID, STRICT;
CREATE INDEX external_identity_by_user ON external_identity(user_id);

-- A person of a provider waits for the mail by which the user with the same address says to be that person.
CREATE TABLE sign_on_confirmation (
  user_id INTEGER PRIMARY KEY REFERENCES hub_user(id) ON DELETE CASCADE,
  hash TEXT NOT NULL UNIQUE, -- of the link
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT;

-- A refresh token is used once; used ones stay until they expire, so that a second use is seen.
CREATE TABLE refresh_token (
  hash TEXT PRIMARY KEY, -- SHA-256; the token itself is not kept
  family TEXT NOT NULL, -- all that follow from one sign-in
  account_id INTEGER NOT NULL REFERENCES account(id),
  user_id INTEGER NOT NULL,
  client_id TEXT NOT NULL,
  scopes TEXT NOT NULL, -- with spaces between them
  generation TEXT NOT NULL, -- of password and client secret, as in access tokens
  expires_ms INTEGER NOT NULL,
  used_ms INTEGER
) STRICT;
CREATE INDEX refresh_token_by_family ON refresh_token(family);
CREATE INDEX refresh_token_by_end ON refresh_token(expires_ms);

-- Invitations of people to an account.
CREATE TABLE invitation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  email TEXT NOT NULL,
  email_key TEXT NOT NULL,
  roles TEXT NOT NULL, -- JSON array
  first_name TEXT,
  last_name TEXT,
  inviter_id INTEGER NOT NULL,
  inviter_name TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  sent_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'Open' CHECK (state IN ('Open', 'Accepted', 'Withdrawn')),
  mail_id INTEGER, -- the last one; its record is purged before
  user_id INTEGER
) STRICT;
CREATE INDEX invitation_by_account ON invitation(account_id, id);
CREATE UNIQUE INDEX invitation_open ON invitation(account_id, email_key) WHERE state = 'Open';

-- Links that work once. Only a hash is kept.
CREATE TABLE one_time_link (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  purpose TEXT NOT NULL CHECK (purpose IN ('invitation', 'reset')),
  subject_id INTEGER NOT NULL, -- invitation, or user
  hash TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  used_ms INTEGER,
  mailed INTEGER NOT NULL DEFAULT 0, -- to the address of the user; otherwise the one who asked for it has it
  maker_id INTEGER -- the user who made it for the password of another one; null: it is the user's own
) STRICT;
CREATE INDEX one_time_link_by_subject ON one_time_link(purpose, subject_id) WHERE used_ms IS NULL;

-- Mails that wait to be sent, and what became of them: without their content, which holds links and passwords.
CREATE TABLE mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER REFERENCES account(id),
  kind TEXT NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  html TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed')),
  next_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  failure TEXT,
  done_ms INTEGER
) STRICT;
CREATE INDEX mail_waiting ON mail(next_ms) WHERE state = 'waiting';
CREATE INDEX mail_by_time ON mail(kind, created_ms);
-- Mails are sent by turns of their accounts.
CREATE INDEX mail_by_account ON mail((coalesce(account_id, 0)), next_ms, id) WHERE state = 'waiting';

-- The audit trail: who changed what about people. Rows are only added.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  account_id INTEGER, -- null: of a user without an account
  actor_id INTEGER, -- null: the configuration, or the hub by itself
  actor_name TEXT NOT NULL,
  impersonator_id INTEGER,
  impersonator_name TEXT,
  action TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT NOT NULL,
  facts TEXT NOT NULL, -- JSON object, without secrets
  address TEXT
) STRICT;
CREATE INDEX audit_by_account ON audit(account_id, id);

-- == Structure ==

CREATE TABLE site (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  type_id INTEGER NOT NULL,
  time_zone_id TEXT NOT NULL,
  street TEXT,
  postal_code TEXT,
  city TEXT,
  country TEXT,
  client_data TEXT -- JSON object: values of fields that are not time-sliced, by form, group and field
) STRICT;
CREATE INDEX site_by_account ON site(account_id);
CREATE INDEX site_with_values ON site(account_id, id) WHERE client_data IS NOT NULL;

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
  client_data TEXT, -- JSON object, as that of a site
  state TEXT NOT NULL DEFAULT 'Enabled'
) STRICT;
CREATE INDEX source_by_site ON source(account_id, site_id);
CREATE INDEX source_by_serial_number ON source(account_id, serial_number);
CREATE INDEX source_by_ean ON source(account_id, ean);
CREATE INDEX source_by_meter_number ON source(account_id, meter_number);
CREATE INDEX source_by_name ON source(account_id, name);
CREATE INDEX source_with_values ON source(account_id, id) WHERE client_data IS NOT NULL;

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
  is_versioned INTEGER NOT NULL DEFAULT 0,
  versions_max INTEGER, -- versions kept of each point; null: as its account has it
  calculated TEXT -- JSON object with its formulas; null: a plain variable
) STRICT;
CREATE INDEX variable_by_source ON variable(source_id, mapping_config);
CREATE INDEX variable_by_type ON variable(account_id, variable_type_id);
CREATE INDEX variable_calculated ON variable(account_id, id) WHERE calculated IS NOT NULL;

-- Groups of sites.
CREATE TABLE site_group (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL
) STRICT;
CREATE INDEX site_group_by_account ON site_group(account_id);

CREATE TABLE site_group_member (
  group_id INTEGER NOT NULL REFERENCES site_group(id) ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, site_id)
) STRICT;
CREATE INDEX site_group_member_by_site ON site_group_member(site_id);

-- Named selections of sites or sources, kept as the expression that was written.
CREATE TABLE view (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  entity_type TEXT NOT NULL, -- Site or Source
  custom_filter TEXT NOT NULL
) STRICT;
CREATE INDEX view_by_account ON view(account_id);

-- == Forms ==

-- Fields that an account gives to its sites or sources, and their values over time.
CREATE TABLE form (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  entity_type TEXT NOT NULL CHECK (entity_type IN ('Site', 'Source')),
  name TEXT NOT NULL,
  name_key TEXT NOT NULL, -- the name without regard to case
  type INTEGER NOT NULL,
  display_order INTEGER NOT NULL,
  UNIQUE (account_id, entity_type, name_key)
) STRICT;

CREATE TABLE form_group (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  form_id INTEGER NOT NULL REFERENCES form(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  display_header TEXT, -- JSON: a text or a boolean
  display_order INTEGER NOT NULL
) STRICT;
CREATE INDEX form_group_by_form ON form_group(form_id);

CREATE TABLE form_field (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  group_id INTEGER NOT NULL REFERENCES form_group(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  display_order INTEGER NOT NULL,
  is_list INTEGER NOT NULL,
  required INTEGER NOT NULL,
  time_sliced INTEGER NOT NULL,
  options TEXT, -- JSON array
  reference_to INTEGER
) STRICT;
CREATE INDEX form_field_by_group ON form_field(group_id);

CREATE TABLE attribute_slice (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  field_id INTEGER NOT NULL REFERENCES form_field(id) ON DELETE CASCADE,
  site_id INTEGER REFERENCES site(id) ON DELETE CASCADE,
  source_id INTEGER REFERENCES source(id) ON DELETE CASCADE,
  from_ms INTEGER NOT NULL,
  value TEXT NOT NULL, -- null: no value from then on
  CHECK ((site_id IS NULL) <> (source_id IS NULL)),
  UNIQUE (field_id, site_id, from_ms),
  UNIQUE (field_id, source_id, from_ms)
) STRICT;
CREATE INDEX attribute_slice_by_site ON attribute_slice(site_id);
CREATE INDEX attribute_slice_by_source ON attribute_slice(source_id);

-- == Search ==

-- Words by which people search; triggers keep them, so that every writer of the structure does. Parents' words belong
-- to what is below them: the variables of a meter are found by its number.
CREATE VIEW site_text AS SELECT id, concat_ws(' ', name, street, postal_code, city) AS text FROM site;
CREATE VIEW source_text AS
SELECT source.id, source.site_id, concat_ws(' ', source.name, serial_number, ean, meter_number, localisation,
    source.tags, site.name) AS text
FROM source JOIN site ON site.id = source.site_id;
CREATE VIEW variable_text AS
SELECT variable.id, variable.source_id, source.site_id, concat_ws(' ', variable.name, mapping_config, variable.tags,
    'unitid' || unit_id, source.name, serial_number, ean, meter_number, source.tags, site.name) AS text
FROM variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id;

CREATE VIRTUAL TABLE site_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE source_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE variable_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');

CREATE TRIGGER site_search_added AFTER INSERT ON site BEGIN
  INSERT INTO site_search(rowid, text) SELECT id, text FROM site_text WHERE id = new.id;
END;
CREATE TRIGGER site_search_changed AFTER UPDATE OF name, street, postal_code, city ON site BEGIN
  INSERT OR REPLACE INTO site_search(rowid, text) SELECT id, text FROM site_text WHERE id = new.id;
END;
CREATE TRIGGER site_search_renamed AFTER UPDATE OF name ON site WHEN old.name <> new.name BEGIN
  INSERT OR REPLACE INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE site_id = new.id;
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE site_id = new.id;
END;
CREATE TRIGGER site_search_removed AFTER DELETE ON site BEGIN
  DELETE FROM site_search WHERE rowid = old.id;
END;

CREATE TRIGGER source_search_added AFTER INSERT ON source BEGIN
  INSERT INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE id = new.id;
END;
CREATE TRIGGER source_search_changed
AFTER UPDATE OF name, serial_number, ean, meter_number, localisation, tags, site_id ON source BEGIN
  INSERT OR REPLACE INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE id = new.id;
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE source_id = new.id;
END;
CREATE TRIGGER source_search_removed AFTER DELETE ON source BEGIN
  DELETE FROM source_search WHERE rowid = old.id;
END;

CREATE TRIGGER variable_search_added AFTER INSERT ON variable BEGIN
  INSERT INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE id = new.id;
END;
CREATE TRIGGER variable_search_changed
AFTER UPDATE OF name, mapping_config, tags, unit_id, source_id ON variable BEGIN
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE id = new.id;
END;
CREATE TRIGGER variable_search_removed AFTER DELETE ON variable BEGIN
  DELETE FROM variable_search WHERE rowid = old.id;
END;

-- == Points ==

-- The latest value of each point, versioned or not, so that ordinary reads touch one table.
CREATE TABLE point (
  variable_id INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  value REAL NOT NULL,
  version TEXT,
  tags TEXT, -- JSON object: the reading's own tags, with the VersionTag under `version`
  batch_tags TEXT, -- JSON object: the tags of the element
  origin_id INTEGER NOT NULL, -- the operation that stored it
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
  origin_id INTEGER NOT NULL,
  PRIMARY KEY (variable_id, at_ms, version_us)
) WITHOUT ROWID, STRICT;

-- Points of a variable that have neither versions nor tags, many in a row: no point and no other block is between their
-- dates. Written by the thread of ingestion (`src/hub/store/blocks/`).
CREATE TABLE point_block (
  variable_id INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  points INTEGER NOT NULL,
  data BLOB NOT NULL, -- `src/hub/store/blocks/codec.ts`
  last_value REAL NOT NULL, -- at `last_ms`, so that the latest point is found without unpacking
  PRIMARY KEY (variable_id, first_ms)
) STRICT;

-- Operations that stored points. Kept when their outcomes are purged, as long as the hub has points.
CREATE TABLE origin (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  operation_id TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  received_ms INTEGER NOT NULL,
  calculation_id INTEGER, -- null: a push
  trace_link TEXT -- as its sender named it
) STRICT;

-- Aggregates of the days of a calendar month in a zone. They are made from points when queries have read these, and
-- removed in the transaction that changes one of the points.
CREATE TABLE rollup (
  variable_id INTEGER NOT NULL,
  zone TEXT NOT NULL, -- IANA
  from_ms INTEGER NOT NULL, -- beginning of the month
  end_ms INTEGER NOT NULL, -- of the last day that is included
  rules TEXT NOT NULL, -- version of the time-zone data that made the days
  days BLOB NOT NULL, -- `src/hub/data/rollups/days.ts`
  PRIMARY KEY (variable_id, zone, from_ms)
) STRICT;

-- Until when a variable may have rollups: the writer of points asks for them only when it changes earlier points.
CREATE TABLE rolled_up (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- a larger one for each change of `until_ms`
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL UNIQUE,
  until_ms INTEGER NOT NULL,
  writes INTEGER NOT NULL -- counts the transactions that changed points before `until_ms`
) STRICT;
CREATE INDEX rolled_up_by_account ON rolled_up(account_id, id);

-- == Operations ==

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
  failed INTEGER NOT NULL DEFAULT 0, -- the operation stays whole in the queue, with its body
  notices TEXT, -- JSON array of texts; null: none
  PRIMARY KEY (intake_id, seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX outcome_by_finish ON outcome(finished_ms);

-- == Calculated variables ==

-- Variables that formulas read.
CREATE TABLE calculated_input (
  calculated_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  variable_id INTEGER NOT NULL REFERENCES variable(id),
  account_id INTEGER NOT NULL REFERENCES account(id),
  is_trigger INTEGER NOT NULL, -- its new points make the calculated variable due
  PRIMARY KEY (calculated_id, variable_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calculated_input_by_variable ON calculated_input(variable_id);
CREATE INDEX calculated_input_by_account ON calculated_input(account_id);

-- Fields of forms that formulas read; a field may go before its formula.
CREATE TABLE calculated_field (
  calculated_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  entity TEXT NOT NULL CHECK (entity IN ('site', 'source')),
  entity_id INTEGER NOT NULL,
  field_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL REFERENCES account(id),
  PRIMARY KEY (calculated_id, entity, entity_id, field_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calculated_field_by_entity ON calculated_field(account_id, entity, entity_id);

-- Dates to calculate.
CREATE TABLE calculation_due (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  input_id INTEGER, -- whose dates these are; null: those of the calculated variable
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL, -- included
  marked_ms INTEGER NOT NULL, -- the oldest mark in it
  cause TEXT NOT NULL CHECK (cause IN ('input', 'slice', 'definition', 'removal', 'force'))
) STRICT;
CREATE INDEX calculation_due_by_variable ON calculation_due(variable_id);
CREATE INDEX calculation_due_by_account ON calculation_due(account_id, id);

-- Runs of the calculation of a variable.
CREATE TABLE calculation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'storing', 'done', 'failed')),
  from_ms INTEGER NOT NULL, -- what was due
  to_ms INTEGER NOT NULL,
  due TEXT NOT NULL, -- JSON array of the intervals with their inputs
  default_version TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_ms INTEGER NOT NULL, -- until when the node owns it
  marked_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER,
  cursor_ms INTEGER, -- parts before it were handed over
  part_ms INTEGER, -- end of the part in work, included
  begin_ms INTEGER, -- of the outputs to calculate; null until it is known
  end_ms INTEGER, -- of the widened window; null until it is known
  sent INTEGER NOT NULL DEFAULT 0, -- operations
  parts INTEGER, -- of all; null until it is known
  applied INTEGER NOT NULL DEFAULT 0, -- of them
  outputs INTEGER NOT NULL DEFAULT 0, -- rows
  stored INTEGER NOT NULL DEFAULT 0,
  replaced INTEGER NOT NULL DEFAULT 0,
  discarded INTEGER NOT NULL DEFAULT 0,
  dropped INTEGER NOT NULL DEFAULT 0, -- rows outside of the window, or without a value
  attempts INTEGER NOT NULL DEFAULT 0,
  takeovers INTEGER NOT NULL DEFAULT 0, -- without progress, by nodes whose last one ended
  message TEXT
) STRICT;
CREATE INDEX calculation_by_variable ON calculation(variable_id, id);
CREATE INDEX calculation_by_account ON calculation(account_id, id);
CREATE INDEX calculation_open ON calculation(state, lease_ms) WHERE state IN ('running', 'waiting', 'storing');

-- Dates that a failed calculation left as they were; they are due again with the next success of the variable.
CREATE TABLE calculation_missed (
  variable_id INTEGER PRIMARY KEY REFERENCES variable(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES account(id),
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL, -- included
  failed_ms INTEGER NOT NULL -- the first failure
) STRICT;

-- == Files ==

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

-- The history of a trigger.
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
  created_by_id INTEGER, -- names can go to other users
  via TEXT NOT NULL,
  idempotency_key TEXT, -- of the request that the file came with, as long as the record is kept
  webhook_url TEXT, -- where the outcomes of its readings are sent, as the sender asked
  state TEXT NOT NULL,
  reason TEXT,
  trigger_id INTEGER, -- stays when the trigger is removed
  run TEXT,
  offers INTEGER NOT NULL DEFAULT 1, -- to the triggers: what becomes of an earlier offer no longer counts
  scan TEXT NOT NULL,
  updated_ms INTEGER NOT NULL,
  -- A sender that did not get the answer for its file sends it again. Until then: null once it has got the answer.
  unanswered_until_ms INTEGER,
  repeated_ms INTEGER -- when it last came again, and was not stored twice
) STRICT;
CREATE INDEX stored_file_by_account ON stored_file(account_id, id);
CREATE INDEX stored_file_by_digest ON stored_file(sha256);
CREATE INDEX stored_file_by_site ON stored_file(site_id);
CREATE INDEX stored_file_received ON stored_file(account_id, id) WHERE state = 'received';
CREATE UNIQUE INDEX stored_file_by_key ON stored_file(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX stored_file_unanswered ON stored_file(account_id, name) WHERE unanswered_until_ms IS NOT NULL;
CREATE INDEX stored_file_unscanned ON stored_file(account_id, id) WHERE scan = 'waiting';

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

-- Reports: what became of the rows of files of master data.
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

-- == Events ==

-- Numbers of the events of accounts. A transaction that adds some holds the row of its account until it ends, so that
-- they become visible in the order of their ids.
CREATE TABLE event_counter (
  account_id INTEGER PRIMARY KEY REFERENCES account(id),
  last INTEGER NOT NULL DEFAULT 0, -- newest event
  purged INTEGER NOT NULL DEFAULT 0 -- events up to this one are no longer kept
) STRICT;

CREATE TABLE event (
  account_id INTEGER NOT NULL REFERENCES account(id),
  id INTEGER NOT NULL, -- from 1 in each account, without gaps
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT,
  state TEXT,
  severity TEXT,
  failure INTEGER NOT NULL,
  site_id INTEGER, -- these three may be gone by now
  source_id INTEGER,
  variable_id INTEGER,
  facts TEXT NOT NULL, -- JSON object
  PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

-- Subscriptions to events, by webhook or feed.
CREATE TABLE event_subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  types TEXT NOT NULL, -- JSON array
  filter TEXT NOT NULL, -- JSON object
  push_outcomes INTEGER NOT NULL, -- whether it asks for outcomes of pushes
  channel TEXT NOT NULL CHECK (channel IN ('webhook', 'feed')),
  url TEXT,
  host TEXT, -- of the URL, with its port
  secret TEXT, -- key of its signatures
  batch INTEGER NOT NULL, -- events of one delivery at most
  active INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  position INTEGER NOT NULL, -- the last event that was delivered, or did not fit the filter
  lost_to INTEGER, -- the last of the events that were purged before they could be delivered
  delivered_ms INTEGER, -- last success
  attempts INTEGER NOT NULL DEFAULT 0, -- failed ones since then
  failing_ms INTEGER, -- since when
  failure TEXT, -- of the last attempt, in the words that users may read
  next_ms INTEGER NOT NULL DEFAULT 0, -- no attempt before
  paused_ms INTEGER, -- not delivered since then, until a person resumes it
  taken_by TEXT, -- the hub that delivers it
  taken_until_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX event_subscription_by_account ON event_subscription(account_id, id);
CREATE INDEX event_subscription_of_pushes ON event_subscription(account_id) WHERE push_outcomes AND active;

-- == Alarms ==

-- Conditions, each of which watches variables or file triggers.
CREATE TABLE alarm_template (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  severity TEXT NOT NULL,
  kind TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  body TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  -- Variables with larger ids are newer than the template: all of their points count.
  last_variable_id INTEGER NOT NULL
) STRICT;
CREATE INDEX alarm_template_by_account ON alarm_template(account_id);

-- The alarm of each template and variable, or file trigger.
CREATE TABLE alarm (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  template_id INTEGER NOT NULL REFERENCES alarm_template(id) ON DELETE CASCADE,
  variable_id INTEGER REFERENCES variable(id) ON DELETE CASCADE,
  trigger_id INTEGER REFERENCES file_trigger(id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  since_ms INTEGER,
  value REAL,
  limit_words TEXT,
  -- Revision of the template that the memory belongs to.
  template_revision INTEGER NOT NULL,
  watermark_ms INTEGER,
  memory TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  -- Grows with each change, so that of two hubs one makes it.
  revision INTEGER NOT NULL DEFAULT 0,
  -- Why it rests: it writes into what it watches, or changed again and again at one date. Null: it does not.
  pause_cause TEXT,
  pause_words TEXT,
  paused_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX alarm_by_variable ON alarm(template_id, variable_id) WHERE variable_id IS NOT NULL;
CREATE UNIQUE INDEX alarm_by_trigger ON alarm(template_id, trigger_id) WHERE trigger_id IS NOT NULL;
CREATE INDEX alarm_by_account ON alarm(account_id, state);
CREATE INDEX alarm_of_variable ON alarm(variable_id);
CREATE INDEX alarm_of_trigger ON alarm(trigger_id);

CREATE TABLE alarm_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  alarm_id INTEGER NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  template_id INTEGER NOT NULL,
  variable_id INTEGER,
  state TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  recorded_ms INTEGER NOT NULL,
  value REAL,
  limit_words TEXT,
  user_name TEXT
) STRICT;
CREATE INDEX alarm_change_by_alarm ON alarm_change(alarm_id, id);
CREATE INDEX alarm_change_by_account ON alarm_change(account_id, id);

CREATE TABLE alarm_comment (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  alarm_id INTEGER NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  user_id INTEGER NOT NULL,
  author TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX alarm_comment_by_alarm ON alarm_comment(alarm_id, id);

CREATE TABLE alarm_view (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  template_views INTEGER NOT NULL,
  filter TEXT NOT NULL
) STRICT;
CREATE INDEX alarm_view_by_account ON alarm_view(account_id);

-- Dispatches: what a change of an alarm sends, to a receiver of webhooks, or into a variable. Written with the change.
CREATE TABLE alarm_dispatch (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'variable')),
  target TEXT NOT NULL,
  host TEXT NOT NULL, -- receivers have shares of the deliveries, by account and host
  body TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX alarm_dispatch_due ON alarm_dispatch(next_ms);
CREATE INDEX alarm_dispatch_by_account ON alarm_dispatch(account_id, next_ms, id);

-- Mails about alarms beyond the limit of an account: one mail names those of a recipient, an hour after the first.
CREATE TABLE alarm_digest (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL, -- of the mail that is not sent
  recorded_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX alarm_digest_by_recipient ON alarm_digest(account_id, recipient, recorded_ms);
