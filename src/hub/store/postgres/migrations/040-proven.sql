-- When the owner of the address proved to be the user; null: another person may know the password.
ALTER TABLE hub_user ADD COLUMN proven_ms BIGINT;
-- Whether it was mailed to the address of the user; otherwise the one who asked for it has it.
ALTER TABLE one_time_link ADD COLUMN mailed BOOLEAN NOT NULL DEFAULT FALSE;

-- A person of a provider waits for the mail by which the user with the same address says to be that person.
CREATE TABLE sign_on_confirmation (
  user_id BIGINT PRIMARY KEY REFERENCES hub_user(id) ON DELETE CASCADE,
  hash TEXT NOT NULL UNIQUE, -- of the link
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  expires_ms BIGINT NOT NULL
);
