-- Events of accounts. A transaction that adds some holds the row of its account until it ends, so that they become
-- visible in the order of their ids.
CREATE TABLE event_counter (
  account_id INTEGER PRIMARY KEY REFERENCES account(id),
  last INTEGER NOT NULL DEFAULT 0, -- newest event
  purged INTEGER NOT NULL DEFAULT 0 -- events up to this one are no longer kept
) STRICT;

CREATE TABLE event (
  account_id INTEGER NOT NULL REFERENCES account(id),
  id INTEGER NOT NULL, -- from 1 in each account, without gaps
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_name TEXT,
  state TEXT,
  severity TEXT,
  failure INTEGER NOT NULL,
  site_id INTEGER, -- these three may be gone by now
  source_id INTEGER,
  variable_id INTEGER,
  facts TEXT NOT NULL, -- JSON object
  PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  types TEXT NOT NULL, -- JSON array
  filter TEXT NOT NULL, -- JSON object
  push_outcomes INTEGER NOT NULL, -- whether it asks for outcomes of pushes
  channel TEXT NOT NULL CHECK (channel IN ('webhook', 'feed')),
  url TEXT,
  host TEXT, -- of the URL, with its port
  secret TEXT, -- key of its signatures
  batch INTEGER NOT NULL, -- events of one delivery at most
  active INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  position INTEGER NOT NULL, -- the last event that was delivered, or did not fit the filter
  lost_to INTEGER, -- the last of the events that were purged before they could be delivered
  delivered_ms INTEGER, -- last success
  attempts INTEGER NOT NULL DEFAULT 0, -- failed ones since then
  failing_ms INTEGER, -- since when
  failure TEXT, -- of the last attempt, in the words that users may read
  next_ms INTEGER NOT NULL DEFAULT 0, -- no attempt before
  paused_ms INTEGER, -- not delivered since then, until a person resumes it
  taken_by TEXT, -- the hub that delivers it
  taken_until_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX event_subscription_by_account ON event_subscription(account_id, id);
CREATE INDEX event_subscription_of_pushes ON event_subscription(account_id) WHERE push_outcomes AND active;
