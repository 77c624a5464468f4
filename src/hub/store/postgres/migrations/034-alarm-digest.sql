-- Mails about alarms beyond the limit of an account: one mail names those of a recipient, an hour after the first.
CREATE TABLE alarm_digest (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL, -- of the mail that is not sent
  recorded_ms BIGINT NOT NULL
);
CREATE INDEX alarm_digest_by_recipient ON alarm_digest(account_id, recipient, recorded_ms);
