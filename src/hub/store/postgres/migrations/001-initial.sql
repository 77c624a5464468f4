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
  version_us BIGINT NOT NULL DEFAULT 0 -- the last VersionTimestamp, microseconds
);

-- Counts changes, so that writers may remember what targets name until one comes.
CREATE TABLE structure_change (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  changes BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE client (
  id TEXT PRIMARY KEY,
  name TEXT,
  secret_hash TEXT NOT NULL,
  scopes JSON, -- array; null: all
  enabled BOOLEAN NOT NULL DEFAULT TRUE
);

CREATE TABLE hub_user (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  username TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  roles JSON NOT NULL, -- array
  accounts JSON NOT NULL, -- array, the default first
  last_account_id BIGINT,
  enabled BOOLEAN NOT NULL DEFAULT TRUE
);

CREATE TABLE signing_key (
  kid TEXT PRIMARY KEY,
  private_jwk TEXT NOT NULL,
  created_ms BIGINT NOT NULL
);

CREATE TABLE site (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  type_id BIGINT NOT NULL,
  time_zone_id TEXT NOT NULL,
  street TEXT,
  postal_code TEXT,
  city TEXT,
  country TEXT
);
CREATE INDEX site_by_account ON site(account_id);

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
  client_data JSON, -- object
  state TEXT NOT NULL DEFAULT 'Enabled'
);
CREATE INDEX source_by_site ON source(site_id);
CREATE INDEX source_by_account ON source(account_id);
CREATE INDEX source_by_serial_number ON source(account_id, serial_number);
CREATE INDEX source_by_ean ON source(account_id, ean);
CREATE INDEX source_by_meter_number ON source(account_id, meter_number);
CREATE INDEX source_by_name ON source(account_id, name);

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
  is_versioned BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX variable_by_source ON variable(source_id, mapping_config);
CREATE INDEX variable_by_type ON variable(account_id, variable_type_id);

-- The latest value of each point, versioned or not, so that ordinary reads touch one table. Partitions of one month are made when a point
-- of it comes (`partitions.ts`); what lies before 1990 and from 2100 on shares one each. No foreign keys: who removes a variable holds its lane.
CREATE TABLE point (
  variable_id BIGINT NOT NULL,
  at_ms BIGINT NOT NULL, -- milliseconds since 1970 in UTC
  value DOUBLE PRECISION NOT NULL,
  version TEXT,
  tags TEXT, -- JSON object: the reading's own tags, with the VersionTag under `version`
  batch_tags TEXT, -- JSON object: the tags of the element
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
  PRIMARY KEY (variable_id, at_ms, version_us)
) PARTITION BY RANGE (at_ms);
CREATE TABLE point_version_before_1990 PARTITION OF point_version FOR VALUES FROM (MINVALUE) TO (631152000000);
CREATE TABLE point_version_from_2100 PARTITION OF point_version FOR VALUES FROM (4102444800000) TO (MAXVALUE);

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
  webhook_state TEXT CHECK (webhook_state IN ('waiting', 'due', 'delivered', 'given-up')),
  webhook_attempts BIGINT NOT NULL DEFAULT 0,
  webhook_next_ms BIGINT NOT NULL DEFAULT 0,
  webhook_error TEXT
);
CREATE UNIQUE INDEX operation_by_key ON operation(account_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX operation_by_id ON operation(account_id, operation_id);
CREATE INDEX operation_waiting ON operation(account_id, seq) WHERE state = 'accepted';
CREATE INDEX operation_webhook ON operation(webhook_next_ms) WHERE webhook_state = 'due';

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
  finished_ms BIGINT NOT NULL
);
