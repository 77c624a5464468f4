-- Named selections of sites or sources, kept as the expression that was written.
CREATE TABLE view (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  entity_type TEXT NOT NULL, -- Site or Source
  custom_filter TEXT NOT NULL
) STRICT;
CREATE INDEX view_by_account ON view(account_id);
