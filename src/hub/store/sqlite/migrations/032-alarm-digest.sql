-- Mails about alarms beyond the limit of an account: one mail names those of a recipient, an hour after the first.
CREATE TABLE alarm_digest (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL, -- of the mail that is not sent
  recorded_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX alarm_digest_by_recipient ON alarm_digest(account_id, recipient, recorded_ms);
