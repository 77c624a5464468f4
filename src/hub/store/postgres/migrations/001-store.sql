-- The store of the hub in PostgreSQL.

-- == Accounts and clients ==

-- Texts without regard to case, by all of Unicode whatever the locale of the database is, and composed (NFC).
DO $$
DECLARE
  collation_name TEXT := (SELECT collname FROM pg_collation WHERE collname IN ('und-x-icu', 'pg_c_utf8')
    ORDER BY collname = 'und-x-icu' DESC LIMIT 1);
BEGIN
  EXECUTE format('CREATE FUNCTION folded(TEXT) RETURNS TEXT IMMUTABLE STRICT PARALLEL SAFE LANGUAGE SQL AS %L',
    format('SELECT lower(normalize($1, NFC) COLLATE %I)', coalesce(collation_name, 'default')));
END
$$;

-- Accounts are walls: every entity of the structure carries its account.
CREATE TABLE account (
  id BIGINT PRIMARY KEY,
  name TEXT NOT NULL
);

-- One writer of points an account at a time: it holds the row's lock. Apart from the account, which others refer to.
CREATE TABLE lane (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  version_us BIGINT NOT NULL DEFAULT 0, -- the last VersionTimestamp, microseconds
  origin_id BIGINT NOT NULL DEFAULT 0 -- the last number that was given
);

-- Counts changes, so that writers may remember what targets name until one comes.
CREATE TABLE structure_change (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  changes BIGINT NOT NULL DEFAULT 0,
  held TEXT -- JSON: a change that goes in slices, and where it is; null: none
);

-- Parts of a plan (JSON) that changes back what a file of master data changes in slices.
CREATE TABLE structure_before (
  account_id BIGINT NOT NULL REFERENCES account(id),
  part INTEGER NOT NULL,
  plan TEXT NOT NULL,
  PRIMARY KEY (account_id, part)
);

CREATE TABLE client (
  id TEXT PRIMARY KEY,
  name TEXT,
  secret_hash TEXT NOT NULL,
  scopes JSON, -- array; null: all
  enabled BOOLEAN NOT NULL DEFAULT TRUE
);

-- Keys that sign access tokens.
CREATE TABLE signing_key (
  kid TEXT PRIMARY KEY,
  private_jwk TEXT NOT NULL,
  created_ms BIGINT NOT NULL
);

-- == People ==

-- Users. A user has roles in each account that it may enter, and what people change outlives the configuration.
CREATE TABLE hub_user (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  username_key TEXT UNIQUE, -- the name without regard to case; null: another user has it
  email TEXT,
  email_key TEXT UNIQUE,
  proven_ms BIGINT, -- when the owner of the address proved to be the user; null: another person may know the password
  first_name TEXT,
  last_name TEXT,
  state TEXT NOT NULL CHECK (state IN ('Active', 'Invited', 'Inactive')),
  password_hash TEXT, -- null: none was given yet, or another service knows the user
  must_change_password BOOLEAN NOT NULL DEFAULT FALSE,
  temporary_until_ms BIGINT, -- end of a temporary password
  token_generation BIGINT NOT NULL DEFAULT 0, -- tokens and sessions of another one have ended
  last_account_id BIGINT,
  totp_secret TEXT,
  totp_confirmed_ms BIGINT, -- null: the second factor is not asked for yet
  totp_used_step BIGINT, -- the last one that was taken
  origin TEXT NOT NULL CHECK (origin IN ('configuration', 'people')),
  seed_password_hash TEXT, -- of the configuration when it was applied last
  seed_facts TEXT -- JSON of the rest of it
);

CREATE TABLE membership (
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL REFERENCES account(id),
  place BIGINT NOT NULL, -- the first is the default account until one is touched
  roles JSON NOT NULL, -- array
  business_id TEXT,
  origin TEXT NOT NULL CHECK (origin IN ('configuration', 'people')),
  PRIMARY KEY (user_id, account_id),
  UNIQUE (account_id, business_id)
);
CREATE INDEX membership_by_account ON membership(account_id, user_id);

-- Claims of a user in an account.
CREATE TABLE user_claim (
  user_id BIGINT NOT NULL,
  account_id BIGINT NOT NULL,
  claim_type TEXT NOT NULL,
  claim_value TEXT NOT NULL,
  PRIMARY KEY (user_id, account_id, claim_type),
  FOREIGN KEY (user_id, account_id) REFERENCES membership(user_id, account_id) ON DELETE CASCADE
);

-- Only its SHA-256 is kept: the token itself is shown once.
CREATE TABLE api_token (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  scopes JSON NOT NULL, -- array
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  last_used_ms BIGINT
);
CREATE INDEX api_token_by_user ON api_token(user_id);

-- Sessions of browsers.
CREATE TABLE session (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the cookie
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL,
  impersonator_id BIGINT, -- the user who acts as user_id
  generation TEXT NOT NULL, -- of the password that it was opened with
  second_factor BOOLEAN NOT NULL, -- whether it was given
  created_ms BIGINT NOT NULL,
  seen_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  address TEXT NOT NULL,
  agent TEXT NOT NULL
);
CREATE INDEX session_by_user ON session(user_id);
-- Sessions are listed and counted by the person who opened them.
CREATE INDEX session_by_opener ON session((COALESCE(impersonator_id, user_id)));

-- Codes with which a user signs in who has lost the device of the second factor.
CREATE TABLE recovery_code (
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
);

-- The identity of a user at a provider of single sign-on, which never gives a subject to another person.
CREATE TABLE external_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  linked_ms BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX external_identity_by_user ON external_identity(user_id);

-- A person of a provider waits for the mail by which the user with the same address says to be that person.
CREATE TABLE sign_on_confirmation (
  user_id BIGINT PRIMARY KEY REFERENCES hub_user(id) ON DELETE CASCADE,
  hash TEXT NOT NULL UNIQUE, -- of the link
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  expires_ms BIGINT NOT NULL
);

-- A refresh token is used once; used ones stay until they expire, so that a second use is seen.
CREATE TABLE refresh_token (
  hash TEXT PRIMARY KEY, -- SHA-256; the token itself is not kept
  family TEXT NOT NULL, -- all that follow from one sign-in
  account_id BIGINT NOT NULL REFERENCES account(id),
  user_id BIGINT NOT NULL,
  client_id TEXT NOT NULL,
  scopes TEXT NOT NULL, -- with spaces between them
  generation TEXT NOT NULL, -- of password and client secret, as in access tokens
  expires_ms BIGINT NOT NULL,
  used_ms BIGINT
);
CREATE INDEX refresh_token_by_family ON refresh_token(family);
CREATE INDEX refresh_token_by_end ON refresh_token(expires_ms);

-- Invitations of people to an account.
CREATE TABLE invitation (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  email TEXT NOT NULL,
  email_key TEXT NOT NULL,
  roles TEXT NOT NULL, -- JSON array
  first_name TEXT,
  last_name TEXT,
  inviter_id BIGINT NOT NULL,
  inviter_name TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  sent_ms BIGINT NOT NULL,
  state TEXT NOT NULL DEFAULT 'Open' CHECK (state IN ('Open', 'Accepted', 'Withdrawn')),
  mail_id BIGINT, -- the last one; its record is purged before
  user_id BIGINT
);
CREATE INDEX invitation_by_account ON invitation(account_id, id);
CREATE UNIQUE INDEX invitation_open ON invitation(account_id, email_key) WHERE state = 'Open';

-- Links that work once. Only a hash is kept.
CREATE TABLE one_time_link (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  purpose TEXT NOT NULL CHECK (purpose IN ('invitation', 'reset')),
  subject_id BIGINT NOT NULL, -- invitation, or user
  hash TEXT NOT NULL UNIQUE,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  used_ms BIGINT,
  mailed BOOLEAN NOT NULL DEFAULT FALSE, -- to the address of the user; otherwise the one who asked for it has it
  maker_id BIGINT -- the user who made it for the password of another one; null: it is the user's own
);
CREATE INDEX one_time_link_by_subject ON one_time_link(purpose, subject_id) WHERE used_ms IS NULL;

-- Mails that wait to be sent, and what became of them: without their content, which holds links and passwords.
CREATE TABLE mail (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT REFERENCES account(id),
  kind TEXT NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  html TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed')),
  next_ms BIGINT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  failure TEXT,
  done_ms BIGINT
);
CREATE INDEX mail_waiting ON mail(next_ms) WHERE state = 'waiting';
CREATE INDEX mail_by_time ON mail(kind, created_ms);
-- Mails are sent by turns of their accounts.
CREATE INDEX mail_by_account ON mail((coalesce(account_id, 0)), next_ms, id) WHERE state = 'waiting';

-- The audit trail: who changed what about people. Rows are only added.
CREATE TABLE audit (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms BIGINT NOT NULL,
  account_id BIGINT, -- null: of a user without an account
  actor_id BIGINT, -- null: the configuration, or the hub by itself
  actor_name TEXT NOT NULL,
  impersonator_id BIGINT,
  impersonator_name TEXT,
  action TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT NOT NULL,
  facts JSON NOT NULL, -- without secrets
  address TEXT
);
CREATE INDEX audit_by_account ON audit(account_id, id);

-- == Structure ==

CREATE TABLE site (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  type_id BIGINT NOT NULL,
  time_zone_id TEXT NOT NULL,
  street TEXT,
  postal_code TEXT,
  city TEXT,
  country TEXT,
  client_data JSON -- object: values of fields that are not time-sliced, by form, group and field
);
CREATE INDEX site_by_account ON site(account_id);
CREATE INDEX site_with_values ON site(account_id, id) WHERE client_data IS NOT NULL;

CREATE TABLE source (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  site_id BIGINT NOT NULL REFERENCES site(id),
  name TEXT NOT NULL,
  serial_number TEXT,
  ean TEXT,
  meter_number TEXT,
  source_type_id BIGINT NOT NULL,
  energy_type_id BIGINT,
  energy_usage_id BIGINT,
  gateway_type_id BIGINT,
  time_zone_id TEXT, -- null: the site's
  description TEXT,
  localisation TEXT,
  meter_address TEXT,
  tags JSON NOT NULL, -- array
  client_data JSON, -- object, as that of a site
  state TEXT NOT NULL DEFAULT 'Enabled'
);
CREATE INDEX source_by_site ON source(site_id);
CREATE INDEX source_by_account ON source(account_id);
CREATE INDEX source_by_serial_number ON source(account_id, serial_number);
CREATE INDEX source_by_ean ON source(account_id, ean);
CREATE INDEX source_by_meter_number ON source(account_id, meter_number);
CREATE INDEX source_by_name ON source(account_id, name);
CREATE INDEX source_with_values ON source(account_id, id) WHERE client_data IS NOT NULL;

CREATE TABLE variable (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  source_id BIGINT NOT NULL REFERENCES source(id),
  name TEXT NOT NULL,
  variable_type_id BIGINT NOT NULL,
  unit_id BIGINT NOT NULL,
  granularity BIGINT,
  granularity_time_base BIGINT,
  quantity_type BIGINT,
  aggregate BIGINT,
  mapping_config TEXT,
  divider DOUBLE PRECISION,
  tags JSON NOT NULL, -- array
  is_versioned BOOLEAN NOT NULL DEFAULT FALSE,
  versions_max INTEGER, -- versions kept of each point; null: as its account has it
  calculated JSON -- its formulas; null: a plain variable
);
CREATE INDEX variable_by_source ON variable(source_id, mapping_config);
CREATE INDEX variable_by_type ON variable(account_id, variable_type_id);
CREATE INDEX variable_calculated ON variable(account_id, id) WHERE calculated IS NOT NULL;

-- Groups of sites.
CREATE TABLE site_group (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL
);
CREATE INDEX site_group_by_account ON site_group(account_id);

CREATE TABLE site_group_member (
  group_id BIGINT NOT NULL REFERENCES site_group(id) ON DELETE CASCADE,
  site_id BIGINT NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, site_id)
);
CREATE INDEX site_group_member_by_site ON site_group_member(site_id);

-- Named selections of sites or sources, kept as the expression that was written.
CREATE TABLE view (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  entity_type TEXT NOT NULL, -- Site or Source
  custom_filter TEXT NOT NULL
);
CREATE INDEX view_by_account ON view(account_id);

-- == Forms ==

-- Fields that an account gives to its sites or sources, and their values over time.
CREATE TABLE form (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  entity_type TEXT NOT NULL CHECK (entity_type IN ('Site', 'Source')),
  name TEXT NOT NULL,
  name_key TEXT NOT NULL, -- the name without regard to case
  type BIGINT NOT NULL,
  display_order BIGINT NOT NULL,
  UNIQUE (account_id, entity_type, name_key)
);

CREATE TABLE form_group (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  form_id BIGINT NOT NULL REFERENCES form(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  display_header TEXT, -- JSON: a text or a boolean
  display_order BIGINT NOT NULL
);
CREATE INDEX form_group_by_form ON form_group(form_id);

CREATE TABLE form_field (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id BIGINT NOT NULL REFERENCES form_group(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  type BIGINT NOT NULL,
  display_order BIGINT NOT NULL,
  is_list BOOLEAN NOT NULL,
  required BOOLEAN NOT NULL,
  time_sliced BOOLEAN NOT NULL,
  options TEXT, -- JSON array
  reference_to BIGINT
);
CREATE INDEX form_field_by_group ON form_field(group_id);

CREATE TABLE attribute_slice (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  field_id BIGINT NOT NULL REFERENCES form_field(id) ON DELETE CASCADE,
  site_id BIGINT REFERENCES site(id) ON DELETE CASCADE,
  source_id BIGINT REFERENCES source(id) ON DELETE CASCADE,
  from_ms BIGINT NOT NULL,
  value JSON NOT NULL, -- null: no value from then on
  CHECK ((site_id IS NULL) <> (source_id IS NULL)),
  UNIQUE (field_id, site_id, from_ms),
  UNIQUE (field_id, source_id, from_ms)
);
CREATE INDEX attribute_slice_by_site ON attribute_slice(site_id);
CREATE INDEX attribute_slice_by_source ON attribute_slice(source_id);

-- == Search ==

-- Words by which people search; triggers keep them, so that every writer of the structure does. Parents' words belong
-- to what is below them: the variables of a meter are found by its number.
CREATE TABLE search_word (
  entity TEXT NOT NULL,
  id BIGINT NOT NULL,
  account_id BIGINT NOT NULL REFERENCES account(id),
  words TSVECTOR NOT NULL, -- with one for the account, which no person can write
  PRIMARY KEY (entity, id)
);
CREATE INDEX search_word_by_word ON search_word USING gin(words);

-- Without case and accents, cut at whatever is no letter or digit. Words have a greatest length in PostgreSQL.
CREATE FUNCTION words_of(account_id BIGINT, given TEXT) RETURNS TSVECTOR STABLE LANGUAGE SQL AS $$
  SELECT array_to_tsvector(array_append(ARRAY(
    SELECT DISTINCT left(word, 60) FROM regexp_split_to_table(
      regexp_replace(normalize(folded(left(given, 10000)), NFD), '[\u0300-\u036f]', '', 'g'), '[[:punct:][:space:]]+'
    ) AS word WHERE word <> ''), '#' || account_id))
$$;

CREATE VIEW site_text AS
SELECT id, account_id, concat_ws(' ', name, street, postal_code, city) AS text FROM site;
CREATE VIEW source_text AS
SELECT source.id, source.account_id, source.site_id, concat_ws(' ', source.name, serial_number, ean, meter_number,
    localisation, source.tags, site.name) AS text
FROM source JOIN site ON site.id = source.site_id;
CREATE VIEW variable_text AS
SELECT variable.id, variable.account_id, variable.source_id, source.site_id, concat_ws(' ', variable.name,
    mapping_config, variable.tags, 'unitid' || unit_id, source.name, serial_number, ean, meter_number, source.tags,
    site.name) AS text
FROM variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id;

CREATE FUNCTION note_site_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'site', id, account_id, words_of(account_id, text) FROM site_text WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  IF TG_OP = 'UPDATE' THEN
    IF OLD.name <> NEW.name THEN
      INSERT INTO search_word SELECT 'source', id, account_id, words_of(account_id, text) FROM source_text
        WHERE site_id = NEW.id
      ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
      INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
        WHERE site_id = NEW.id
      ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
    END IF;
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION note_source_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'source', id, account_id, words_of(account_id, text) FROM source_text
    WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
      WHERE source_id = NEW.id
    ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION note_variable_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
    WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  RETURN NULL;
END
$$;
CREATE FUNCTION forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM search_word WHERE entity = TG_TABLE_NAME AND id = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER site_words AFTER INSERT OR UPDATE OF name, street, postal_code, city ON site
FOR EACH ROW EXECUTE FUNCTION note_site_words();
CREATE TRIGGER source_words
AFTER INSERT OR UPDATE OF name, serial_number, ean, meter_number, localisation, tags, site_id ON source
FOR EACH ROW EXECUTE FUNCTION note_source_words();
CREATE TRIGGER variable_words AFTER INSERT OR UPDATE OF name, mapping_config, tags, unit_id, source_id ON variable
FOR EACH ROW EXECUTE FUNCTION note_variable_words();
CREATE TRIGGER site_words_removed AFTER DELETE ON site FOR EACH ROW EXECUTE FUNCTION forget_words();
CREATE TRIGGER source_words_removed AFTER DELETE ON source FOR EACH ROW EXECUTE FUNCTION forget_words();
CREATE TRIGGER variable_words_removed AFTER DELETE ON variable FOR EACH ROW EXECUTE FUNCTION forget_words();

-- == Points ==

-- The latest value of each point, versioned or not, so that ordinary reads touch one table. Partitions of one month are
-- made when a point of it comes (`partitions.ts`); dates before 1990 and from 2100 on share one each. No foreign keys:
-- who removes a variable holds its lane.
CREATE TABLE point (
  variable_id BIGINT NOT NULL,
  at_ms BIGINT NOT NULL, -- milliseconds since 1970 in UTC
  value DOUBLE PRECISION NOT NULL,
  version TEXT,
  tags TEXT, -- JSON object: the reading's own tags, with the VersionTag under `version`
  batch_tags TEXT, -- JSON object: the tags of the element
  origin_id BIGINT NOT NULL, -- the operation that stored it
  PRIMARY KEY (variable_id, at_ms)
) PARTITION BY RANGE (at_ms);
CREATE TABLE point_before_1990 PARTITION OF point FOR VALUES FROM (MINVALUE) TO (631152000000);
CREATE TABLE point_from_2100 PARTITION OF point FOR VALUES FROM (4102444800000) TO (MAXVALUE);

-- All versions of points of versioned variables, the latest included.
CREATE TABLE point_version (
  variable_id BIGINT NOT NULL,
  at_ms BIGINT NOT NULL,
  version_us BIGINT NOT NULL, -- VersionTimestamp, microseconds; strictly increasing through the whole account
  value DOUBLE PRECISION NOT NULL,
  version TEXT,
  tags TEXT,
  batch_tags TEXT,
  origin_id BIGINT NOT NULL,
  PRIMARY KEY (variable_id, at_ms, version_us)
) PARTITION BY RANGE (at_ms);
CREATE TABLE point_version_before_1990 PARTITION OF point_version FOR VALUES FROM (MINVALUE) TO (631152000000);
CREATE TABLE point_version_from_2100 PARTITION OF point_version FOR VALUES FROM (4102444800000) TO (MAXVALUE);

-- Points of a variable that have neither versions nor tags, many in a row: no point and no other block is between their
-- dates. Written by writers of points, in the lane of the account (`src/hub/store/blocks/`).
CREATE TABLE point_block (
  variable_id BIGINT NOT NULL,
  first_ms BIGINT NOT NULL,
  last_ms BIGINT NOT NULL,
  points BIGINT NOT NULL,
  data BYTEA NOT NULL, -- `src/hub/store/blocks/codec.ts`
  last_value DOUBLE PRECISION NOT NULL, -- at `last_ms`, so that the latest point is found without unpacking
  PRIMARY KEY (variable_id, first_ms)
);
ALTER TABLE point_block ALTER COLUMN data SET STORAGE EXTERNAL; -- compressed already

-- Operations that stored points, numbered within each account. Kept when their outcomes are purged, as long as the hub
-- has points.
CREATE TABLE origin (
  account_id BIGINT NOT NULL REFERENCES account(id),
  id BIGINT NOT NULL,
  operation_id TEXT NOT NULL,
  user_id BIGINT NOT NULL,
  received_ms BIGINT NOT NULL,
  calculation_id BIGINT, -- null: a push
  trace_link TEXT, -- as its sender named it
  PRIMARY KEY (account_id, id)
);

-- Aggregates of the days of a calendar month in a zone. They are made from points when queries have read these, and
-- removed in the transaction that changes one of the points.
CREATE TABLE rollup (
  variable_id BIGINT NOT NULL,
  zone TEXT NOT NULL, -- IANA
  from_ms BIGINT NOT NULL, -- beginning of the month
  end_ms BIGINT NOT NULL, -- of the last day that is included
  rules TEXT NOT NULL, -- version of the time-zone data that made the days
  days BYTEA NOT NULL, -- `src/hub/data/rollups/days.ts`
  PRIMARY KEY (variable_id, zone, from_ms)
);

-- Until when a variable may have rollups: the writer of points asks for them only when it changes earlier points.
CREATE TABLE rolled_up (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- a larger one for each change of `until_ms`
  account_id BIGINT NOT NULL REFERENCES account(id),
  variable_id BIGINT NOT NULL UNIQUE,
  until_ms BIGINT NOT NULL,
  writes BIGINT NOT NULL -- counts the transactions that changed points before `until_ms`
);
CREATE INDEX rolled_up_by_account ON rolled_up(account_id, id);

-- == Operations ==

-- The queue. An operation becomes `done` or `failed` in the transaction that writes its points.
CREATE TABLE operation (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  user_id BIGINT NOT NULL,
  operation_id TEXT NOT NULL,
  idempotency_key TEXT,
  digest TEXT NOT NULL, -- SHA-256 of the body
  timeout_sec BIGINT NOT NULL,
  received BIGINT NOT NULL, -- readings in the body
  accepted_ms BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('accepted', 'done', 'failed')),
  webhook_url TEXT,
  webhook_host TEXT, -- of `webhook_url`, with its port; deliveries take turns by it
  webhook_state TEXT CHECK (webhook_state IN ('waiting', 'due', 'delivered', 'given-up')),
  webhook_attempts BIGINT NOT NULL DEFAULT 0,
  webhook_next_ms BIGINT NOT NULL DEFAULT 0,
  webhook_error TEXT,
  calculation_id BIGINT, -- whose outputs the operation stores; null: a push
  trace_link TEXT -- where the sender shows the origin of its readings
);
CREATE UNIQUE INDEX operation_by_key ON operation(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_by_id ON operation(account_id, operation_id);
CREATE INDEX operation_waiting ON operation(account_id, seq) WHERE state = 'accepted';
CREATE INDEX operation_webhook ON operation(webhook_next_ms) WHERE webhook_state = 'due';
CREATE INDEX operation_failed ON operation(account_id, seq) WHERE state = 'failed';
-- Old operations are found by their age, so that the hourly removal reads those alone that go.
CREATE INDEX operation_by_age ON operation(accepted_ms);
CREATE INDEX operation_key_by_age ON operation(accepted_ms) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_webhook_host ON operation(account_id, webhook_host, webhook_next_ms, seq)
  WHERE webhook_state = 'due';

-- Kept until the operation is done.
CREATE TABLE body (
  seq BIGINT PRIMARY KEY REFERENCES operation(seq) ON DELETE CASCADE,
  bytes BYTEA NOT NULL
);
ALTER TABLE body ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE outcome (
  seq BIGINT PRIMARY KEY REFERENCES operation(seq) ON DELETE CASCADE,
  stored BIGINT NOT NULL,
  replaced BIGINT NOT NULL,
  discarded JSON NOT NULL, -- array of { target, reason, count }
  started_ms BIGINT NOT NULL,
  finished_ms BIGINT NOT NULL,
  notices TEXT -- JSON array of texts; null: none
);

-- What accounts with a quota pushed, by day (`2026-03-01`, in UTC).
CREATE TABLE usage (
  account_id BIGINT NOT NULL REFERENCES account(id),
  day TEXT COLLATE "C" NOT NULL,
  points BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  PRIMARY KEY (account_id, day)
);

-- == Calculated variables ==

-- Variables that formulas read.
CREATE TABLE calculated_input (
  calculated_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  variable_id BIGINT NOT NULL REFERENCES variable(id),
  account_id BIGINT NOT NULL REFERENCES account(id),
  is_trigger BOOLEAN NOT NULL, -- its new points make the calculated variable due
  PRIMARY KEY (calculated_id, variable_id)
);
CREATE INDEX calculated_input_by_variable ON calculated_input(variable_id);
CREATE INDEX calculated_input_by_account ON calculated_input(account_id);

-- Fields of forms that formulas read; a field may go before its formula.
CREATE TABLE calculated_field (
  calculated_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  entity TEXT NOT NULL CHECK (entity IN ('site', 'source')),
  entity_id BIGINT NOT NULL,
  field_id BIGINT NOT NULL,
  account_id BIGINT NOT NULL REFERENCES account(id),
  PRIMARY KEY (calculated_id, entity, entity_id, field_id)
);
CREATE INDEX calculated_field_by_entity ON calculated_field(account_id, entity, entity_id);

-- Dates to calculate.
CREATE TABLE calculation_due (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  variable_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  input_id BIGINT, -- whose dates these are; null: those of the calculated variable
  from_ms BIGINT NOT NULL,
  to_ms BIGINT NOT NULL, -- included
  marked_ms BIGINT NOT NULL, -- the oldest mark in it
  cause TEXT NOT NULL CHECK (cause IN ('input', 'slice', 'definition', 'removal', 'force'))
);
CREATE INDEX calculation_due_by_variable ON calculation_due(variable_id);
CREATE INDEX calculation_due_by_account ON calculation_due(account_id, id);

-- Runs of the calculation of a variable.
CREATE TABLE calculation (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  variable_id BIGINT NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'storing', 'done', 'failed')),
  from_ms BIGINT NOT NULL, -- what was due
  to_ms BIGINT NOT NULL,
  due TEXT NOT NULL, -- JSON array of the intervals with their inputs
  default_version TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_ms BIGINT NOT NULL, -- until when the node owns it
  marked_ms BIGINT NOT NULL,
  started_ms BIGINT NOT NULL,
  finished_ms BIGINT,
  cursor_ms BIGINT, -- parts before it were handed over
  part_ms BIGINT, -- end of the part in work, included
  begin_ms BIGINT, -- of the outputs to calculate; null until it is known
  end_ms BIGINT, -- of the widened window; null until it is known
  sent BIGINT NOT NULL DEFAULT 0, -- operations
  parts BIGINT, -- of all; null until it is known
  applied BIGINT NOT NULL DEFAULT 0, -- of them
  outputs BIGINT NOT NULL DEFAULT 0, -- rows
  stored BIGINT NOT NULL DEFAULT 0,
  replaced BIGINT NOT NULL DEFAULT 0,
  discarded BIGINT NOT NULL DEFAULT 0,
  dropped BIGINT NOT NULL DEFAULT 0, -- rows outside of the window, or without a value
  attempts BIGINT NOT NULL DEFAULT 0,
  takeovers INTEGER NOT NULL DEFAULT 0, -- without progress, by nodes whose last one ended
  message TEXT
);
CREATE INDEX calculation_by_variable ON calculation(variable_id, id);
CREATE INDEX calculation_by_account ON calculation(account_id, id);
CREATE INDEX calculation_open ON calculation(state, lease_ms) WHERE state IN ('running', 'waiting', 'storing');

-- Dates that a failed calculation left as they were; they are due again with the next success of the variable.
CREATE TABLE calculation_missed (
  variable_id BIGINT PRIMARY KEY REFERENCES variable(id) ON DELETE CASCADE,
  account_id BIGINT NOT NULL REFERENCES account(id),
  from_ms BIGINT NOT NULL,
  to_ms BIGINT NOT NULL, -- included
  failed_ms BIGINT NOT NULL -- the first failure
);

-- == Files ==

-- Rules that claim files by name. A removed one stays, in state Deleted, for its history.
CREATE TABLE file_trigger (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT,
  file_type TEXT NOT NULL,
  ingestion_type TEXT NOT NULL,
  trigger_type TEXT NOT NULL,
  patterns JSON NOT NULL, -- array of { filterType, value }
  combination TEXT NOT NULL,
  state TEXT NOT NULL,
  token TEXT NOT NULL, -- GUID in lower case, unique by `file_trigger_token`
  mapping TEXT, -- name of the mapper
  metadata JSON NOT NULL, -- object
  creation_ms BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  last_edit_ms BIGINT NOT NULL,
  edited_by TEXT NOT NULL
);
CREATE INDEX file_trigger_by_account ON file_trigger(account_id);
CREATE INDEX file_trigger_by_token ON file_trigger(token);

-- Every token that a trigger has or had: a sender that still uses an old one never reaches another account's trigger.
CREATE TABLE file_trigger_token (
  token TEXT PRIMARY KEY,
  trigger_id BIGINT NOT NULL REFERENCES file_trigger(id)
);

-- The history of a trigger.
CREATE TABLE file_trigger_change (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  trigger_id BIGINT NOT NULL REFERENCES file_trigger(id),
  at_ms BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  state TEXT NOT NULL,
  before JSON, -- object of the fields; null: the trigger was created
  after JSON NOT NULL
);
CREATE INDEX file_trigger_change_by_trigger ON file_trigger_change(trigger_id);

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
  created_by_id BIGINT, -- names can go to other users
  via TEXT NOT NULL,
  idempotency_key TEXT, -- of the request that the file came with, as long as the record is kept
  webhook_url TEXT, -- where the outcomes of its readings are sent, as the sender asked
  state TEXT NOT NULL,
  reason TEXT,
  trigger_id BIGINT, -- stays when the trigger is removed
  run TEXT,
  offers BIGINT NOT NULL DEFAULT 1, -- to the triggers: what becomes of an earlier offer no longer counts
  scan TEXT NOT NULL,
  updated_ms BIGINT NOT NULL,
  -- A sender that did not get the answer for its file sends it again. Until then: null once it has got the answer.
  unanswered_until_ms BIGINT,
  repeated_ms BIGINT -- when it last came again, and was not stored twice
);
CREATE INDEX stored_file_by_account ON stored_file(account_id, id);
CREATE INDEX stored_file_by_digest ON stored_file(sha256);
CREATE INDEX stored_file_by_site ON stored_file(site_id);
CREATE INDEX stored_file_received ON stored_file(account_id, id) WHERE state = 'received';
CREATE UNIQUE INDEX stored_file_by_key ON stored_file(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX stored_file_unanswered ON stored_file(account_id, name) WHERE unanswered_until_ms IS NOT NULL;
CREATE INDEX stored_file_unscanned ON stored_file(account_id, id) WHERE scan = 'waiting';

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

-- Reports: what became of the rows of files of master data.
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

-- == Events ==

-- Numbers of the events of accounts. A transaction that adds some holds the row of its account until it ends, so that
-- they become visible in the order of their ids.
CREATE TABLE event_counter (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  last BIGINT NOT NULL DEFAULT 0, -- newest event
  purged BIGINT NOT NULL DEFAULT 0 -- events up to this one are no longer kept
);

CREATE TABLE event (
  account_id BIGINT NOT NULL REFERENCES account(id),
  id BIGINT NOT NULL, -- from 1 in each account, without gaps
  at_ms BIGINT NOT NULL,
  type TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT,
  state TEXT,
  severity TEXT,
  failure BOOLEAN NOT NULL,
  site_id BIGINT, -- these three may be gone by now
  source_id BIGINT,
  variable_id BIGINT,
  facts TEXT NOT NULL, -- JSON object
  PRIMARY KEY (account_id, id)
);

-- Subscriptions to events, by webhook or feed.
CREATE TABLE event_subscription (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  types TEXT NOT NULL, -- JSON array
  filter TEXT NOT NULL, -- JSON object
  push_outcomes BOOLEAN NOT NULL, -- whether it asks for outcomes of pushes
  channel TEXT NOT NULL CHECK (channel IN ('webhook', 'feed')),
  url TEXT,
  host TEXT, -- of the URL, with its port
  secret TEXT, -- key of its signatures
  batch BIGINT NOT NULL, -- events of one delivery at most
  active BOOLEAN NOT NULL,
  created_ms BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  position BIGINT NOT NULL, -- the last event that was delivered, or did not fit the filter
  lost_to BIGINT, -- the last of the events that were purged before they could be delivered
  delivered_ms BIGINT, -- last success
  attempts BIGINT NOT NULL DEFAULT 0, -- failed ones since then
  failing_ms BIGINT, -- since when
  failure TEXT, -- of the last attempt, in the words that users may read
  next_ms BIGINT NOT NULL DEFAULT 0, -- no attempt before
  paused_ms BIGINT, -- not delivered since then, until a person resumes it
  taken_by TEXT, -- the hub that delivers it
  taken_until_ms BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX event_subscription_by_account ON event_subscription(account_id, id);
CREATE INDEX event_subscription_of_pushes ON event_subscription(account_id) WHERE push_outcomes AND active;

-- == Alarms ==

-- Conditions, each of which watches variables or file triggers.
CREATE TABLE alarm_template (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  severity TEXT NOT NULL,
  kind TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  body TEXT NOT NULL,
  revision BIGINT NOT NULL,
  created_ms BIGINT NOT NULL,
  changed_ms BIGINT NOT NULL,
  -- Variables with larger ids are newer than the template: all of their points count.
  last_variable_id BIGINT NOT NULL
);
CREATE INDEX alarm_template_by_account ON alarm_template(account_id);

-- The alarm of each template and variable, or file trigger.
CREATE TABLE alarm (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  template_id BIGINT NOT NULL REFERENCES alarm_template(id) ON DELETE CASCADE,
  variable_id BIGINT REFERENCES variable(id) ON DELETE CASCADE,
  trigger_id BIGINT REFERENCES file_trigger(id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  since_ms BIGINT,
  value DOUBLE PRECISION,
  limit_words TEXT,
  -- Revision of the template that the memory belongs to.
  template_revision BIGINT NOT NULL,
  watermark_ms BIGINT,
  memory TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  -- Grows with each change, so that of two hubs one makes it.
  revision BIGINT NOT NULL DEFAULT 0,
  -- Why it rests: it writes into what it watches, or changed again and again at one date. Null: it does not.
  pause_cause TEXT,
  pause_words TEXT,
  paused_ms BIGINT
);
CREATE UNIQUE INDEX alarm_by_variable ON alarm(template_id, variable_id) WHERE variable_id IS NOT NULL;
CREATE UNIQUE INDEX alarm_by_trigger ON alarm(template_id, trigger_id) WHERE trigger_id IS NOT NULL;
CREATE INDEX alarm_by_account ON alarm(account_id, state);
CREATE INDEX alarm_of_variable ON alarm(variable_id);
CREATE INDEX alarm_of_trigger ON alarm(trigger_id);

CREATE TABLE alarm_change (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  alarm_id BIGINT NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  template_id BIGINT NOT NULL,
  variable_id BIGINT,
  state TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  recorded_ms BIGINT NOT NULL,
  value DOUBLE PRECISION,
  limit_words TEXT,
  user_name TEXT
);
CREATE INDEX alarm_change_by_alarm ON alarm_change(alarm_id, id);
CREATE INDEX alarm_change_by_account ON alarm_change(account_id, id);

CREATE TABLE alarm_comment (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  alarm_id BIGINT NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  author TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX alarm_comment_by_alarm ON alarm_comment(alarm_id, id);

CREATE TABLE alarm_view (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  template_views BOOLEAN NOT NULL,
  filter TEXT NOT NULL
);
CREATE INDEX alarm_view_by_account ON alarm_view(account_id);

-- Dispatches: what a change of an alarm sends, to a receiver of webhooks, or into a variable. Written with the change.
CREATE TABLE alarm_dispatch (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'variable')),
  target TEXT NOT NULL,
  host TEXT NOT NULL, -- receivers have shares of the deliveries, by account and host
  body TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL
);
CREATE INDEX alarm_dispatch_due ON alarm_dispatch(next_ms);
CREATE INDEX alarm_dispatch_by_account ON alarm_dispatch(account_id, next_ms, id);

-- Mails about alarms beyond the limit of an account: one mail names those of a recipient, an hour after the first.
CREATE TABLE alarm_digest (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL, -- of the mail that is not sent
  recorded_ms BIGINT NOT NULL
);
CREATE INDEX alarm_digest_by_recipient ON alarm_digest(account_id, recipient, recorded_ms);
