-- A change of a form goes in slices: `held` has what it does and where it is (JSON), and is null otherwise.
ALTER TABLE structure_change ADD COLUMN held TEXT;
CREATE INDEX site_with_values ON site(account_id, id) WHERE client_data IS NOT NULL;
CREATE INDEX source_with_values ON source(account_id, id) WHERE client_data IS NOT NULL;
