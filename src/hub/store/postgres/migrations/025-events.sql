-- Events of accounts. A transaction that adds some holds the row of its account until it ends, so that they become
-- visible in the order of their ids.
CREATE TABLE event_counter (
  account_id BIGINT PRIMARY KEY REFERENCES account(id),
  last BIGINT NOT NULL DEFAULT 0, -- newest event
  purged BIGINT NOT NULL DEFAULT 0 -- events up to this one are no longer kept
);

CREATE TABLE event (
  account_id BIGINT NOT NULL REFERENCES account(id),
  id BIGINT NOT NULL, -- from 1 in each account, without gaps
  at_ms BIGINT NOT NULL,
  type TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT,
  state TEXT,
  severity TEXT,
  failure BOOLEAN NOT NULL,
  site_id BIGINT, -- these three may be gone by now
  source_id BIGINT,
  variable_id BIGINT,
  facts TEXT NOT NULL, -- JSON object
  PRIMARY KEY (account_id, id)
);

CREATE TABLE event_subscription (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  types TEXT NOT NULL, -- JSON array
  filter TEXT NOT NULL, -- JSON object
  push_outcomes BOOLEAN NOT NULL, -- whether it asks for outcomes of pushes
  channel TEXT NOT NULL CHECK (channel IN ('webhook', 'feed')),
  url TEXT,
  host TEXT, -- of the URL, with its port
  secret TEXT, -- key of its signatures
  batch BIGINT NOT NULL, -- events of one delivery at most
  active BOOLEAN NOT NULL,
  created_ms BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  position BIGINT NOT NULL, -- the last event that was delivered, or did not fit the filter
  lost_to BIGINT, -- the last of the events that were purged before they could be delivered
  delivered_ms BIGINT, -- last success
  attempts BIGINT NOT NULL DEFAULT 0, -- failed ones since then
  failing_ms BIGINT, -- since when
  failure TEXT, -- of the last attempt, in the words that users may read
  next_ms BIGINT NOT NULL DEFAULT 0, -- no attempt before
  paused_ms BIGINT, -- not delivered since then, until a person resumes it
  taken_by TEXT, -- the hub that delivers it
  taken_until_ms BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX event_subscription_by_account ON event_subscription(account_id, id);
CREATE INDEX event_subscription_of_pushes ON event_subscription(account_id) WHERE push_outcomes AND active;
