-- Groups of sites.
CREATE TABLE site_group (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL
);
CREATE INDEX site_group_by_account ON site_group(account_id);

CREATE TABLE site_group_member (
  group_id BIGINT NOT NULL REFERENCES site_group(id) ON DELETE CASCADE,
  site_id BIGINT NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, site_id)
);
CREATE INDEX site_group_member_by_site ON site_group_member(site_id);
