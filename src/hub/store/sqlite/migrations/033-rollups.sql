-- Aggregates of the days of a calendar month in a zone. They are made from points when queries have read these, and
-- removed in the transaction that changes one of the points.
CREATE TABLE rollup (
  variable_id INTEGER NOT NULL,
  zone TEXT NOT NULL, -- IANA
  from_ms INTEGER NOT NULL, -- beginning of the month
  end_ms INTEGER NOT NULL, -- of the last day that is included
  rules TEXT NOT NULL, -- version of the time-zone data that made the days
  days BLOB NOT NULL, -- `src/hub/data/rollups/days.ts`
  PRIMARY KEY (variable_id, zone, from_ms)
) STRICT;

-- Until when a variable may have rollups, so that the writer of points asks for them only when it changes earlier points.
CREATE TABLE rolled_up (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- a larger one for each change of `until_ms`
  account_id INTEGER NOT NULL REFERENCES account(id),
  variable_id INTEGER NOT NULL UNIQUE,
  until_ms INTEGER NOT NULL,
  writes INTEGER NOT NULL -- counts the transactions that changed points before `until_ms`
) STRICT;
CREATE INDEX rolled_up_by_account ON rolled_up(account_id, id);
