-- Named selections of sites or sources, kept as the expression that was written.
CREATE TABLE view (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  entity_type TEXT NOT NULL, -- Site or Source
  custom_filter TEXT NOT NULL
);
CREATE INDEX view_by_account ON view(account_id);
