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

-- With which a user signs in who has lost the device of the second factor.
CREATE TABLE recovery_code (
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
) STRICT, WITHOUT ROWID;
