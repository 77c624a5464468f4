-- People: a user has roles in each account that it may enter, and what people change outlives the configuration.
ALTER TABLE hub_user
  ADD COLUMN username_key TEXT UNIQUE, -- the name without regard to case; null: an older user has it
  ADD COLUMN email TEXT,
  ADD COLUMN email_key TEXT UNIQUE,
  ADD COLUMN first_name TEXT,
  ADD COLUMN last_name TEXT,
  ADD COLUMN state TEXT NOT NULL DEFAULT 'Active' CHECK (state IN ('Active', 'Invited', 'Inactive')),
  ALTER COLUMN password_hash DROP NOT NULL, -- null: none was given yet, or another service knows the user
  ADD COLUMN must_change_password BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN temporary_until_ms BIGINT, -- end of a temporary password
  ADD COLUMN token_generation BIGINT NOT NULL DEFAULT 0, -- tokens and sessions of another one have ended
  ADD COLUMN totp_secret TEXT,
  ADD COLUMN totp_confirmed_ms BIGINT, -- null: the second factor is not asked for yet
  ADD COLUMN totp_used_step BIGINT, -- the last one that was taken
  ADD COLUMN origin TEXT NOT NULL DEFAULT 'configuration' CHECK (origin IN ('configuration', 'people')),
  ADD COLUMN seed_password_hash TEXT, -- of the configuration when it was applied last
  ADD COLUMN seed_facts TEXT; -- JSON of the rest of it
UPDATE hub_user SET state = CASE WHEN enabled THEN 'Active' ELSE 'Inactive' END,
  seed_password_hash = CASE WHEN enabled THEN password_hash END;
UPDATE hub_user SET username_key = folded(username)
  WHERE id IN (SELECT min(id) FROM hub_user GROUP BY folded(username));

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
INSERT INTO membership (user_id, account_id, place, roles, origin)
  SELECT hub_user.id, account.id, min(entered.place), CAST(CAST(hub_user.roles AS TEXT) AS JSON), 'configuration'
  FROM hub_user
  CROSS JOIN LATERAL json_array_elements_text(hub_user.accounts) WITH ORDINALITY AS entered(value, place)
  JOIN account ON account.id = CAST(entered.value AS BIGINT)
  GROUP BY hub_user.id, account.id, CAST(hub_user.roles AS TEXT);
ALTER TABLE hub_user DROP COLUMN roles, DROP COLUMN accounts, DROP COLUMN enabled,
  ALTER COLUMN state DROP DEFAULT, ALTER COLUMN origin DROP DEFAULT;

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

-- Who changed what about people. Rows are only added.
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
