-- Mails that wait to be sent, and what became of them: without their content, which holds links and passwords.
CREATE TABLE mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER REFERENCES account(id),
  kind TEXT NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  html TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed')),
  next_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  failure TEXT,
  done_ms INTEGER
) STRICT;
CREATE INDEX mail_waiting ON mail(next_ms) WHERE state = 'waiting';
CREATE INDEX mail_by_time ON mail(kind, created_ms);

-- Links that work once. Only a hash is kept.
CREATE TABLE one_time_link (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  purpose TEXT NOT NULL CHECK (purpose IN ('invitation', 'reset')),
  subject_id INTEGER NOT NULL, -- invitation, or user
  hash TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  used_ms INTEGER
) STRICT;
CREATE INDEX one_time_link_by_subject ON one_time_link(purpose, subject_id) WHERE used_ms IS NULL;
