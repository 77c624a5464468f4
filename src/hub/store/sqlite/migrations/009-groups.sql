-- Groups of sites.
CREATE TABLE site_group (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  name TEXT NOT NULL
) STRICT;
CREATE INDEX site_group_by_account ON site_group(account_id);

CREATE TABLE site_group_member (
  group_id INTEGER NOT NULL REFERENCES site_group(id) ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, site_id)
) STRICT;
CREATE INDEX site_group_member_by_site ON site_group_member(site_id);
