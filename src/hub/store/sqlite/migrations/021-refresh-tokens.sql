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
