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

-- With which a user signs in who has lost the device of the second factor.
CREATE TABLE recovery_code (
  user_id BIGINT NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
);
