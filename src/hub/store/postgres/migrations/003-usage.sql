-- What accounts with a quota pushed, by day (`2026-03-01`, in UTC).
CREATE TABLE usage (
  account_id BIGINT NOT NULL REFERENCES account(id),
  day TEXT COLLATE "C" NOT NULL,
  points BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  PRIMARY KEY (account_id, day)
);
