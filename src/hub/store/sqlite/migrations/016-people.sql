-- People: a user has roles in each account that it may enter, and what people change outlives the configuration.
CREATE TABLE hub_user (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  username TEXT NOT NULL UNIQUE,
  username_key TEXT UNIQUE, -- the name without regard to case; null: an older user has it
  email TEXT,
  email_key TEXT UNIQUE,
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
INSERT INTO hub_user (id, username, username_key, state, password_hash, last_account_id, origin, seed_password_hash)
  SELECT id, username,
    CASE WHEN id = min(id) OVER (PARTITION BY folded(username)) THEN folded(username) END,
    CASE enabled WHEN 1 THEN 'Active' ELSE 'Inactive' END, password_hash, last_account_id, 'configuration',
    CASE enabled WHEN 1 THEN password_hash END
  FROM user;

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
INSERT INTO membership (user_id, account_id, place, roles, origin)
  SELECT user.id, entered.value, min(entered.key), user.roles, 'configuration'
  FROM user, json_each(user.accounts) AS entered
  WHERE entered.value IN (SELECT id FROM account)
  GROUP BY user.id, entered.value;
DROP TABLE user;

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

-- Who changed what about people. Rows are only added.
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
