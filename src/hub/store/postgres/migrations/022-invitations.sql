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
