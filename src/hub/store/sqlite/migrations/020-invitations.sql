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
