-- Forms: fields that an account gives to its sites or sources, and their values over time.
CREATE TABLE form (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  entity_type TEXT NOT NULL CHECK (entity_type IN ('Site', 'Source')),
  name TEXT NOT NULL,
  name_key TEXT NOT NULL, -- the name without regard to case
  type INTEGER NOT NULL,
  display_order INTEGER NOT NULL,
  UNIQUE (account_id, entity_type, name_key)
) STRICT;

CREATE TABLE form_group (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  form_id INTEGER NOT NULL REFERENCES form(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  display_header TEXT, -- JSON: a text or a boolean
  display_order INTEGER NOT NULL
) STRICT;
CREATE INDEX form_group_by_form ON form_group(form_id);

CREATE TABLE form_field (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  group_id INTEGER NOT NULL REFERENCES form_group(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  display_order INTEGER NOT NULL,
  is_list INTEGER NOT NULL,
  required INTEGER NOT NULL,
  time_sliced INTEGER NOT NULL,
  options TEXT, -- JSON array
  reference_to INTEGER
) STRICT;
CREATE INDEX form_field_by_group ON form_field(group_id);

-- Values of fields that are not time-sliced, by form, group and field; those of sources are there already.
ALTER TABLE site ADD COLUMN client_data TEXT;

CREATE TABLE attribute_slice (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  field_id INTEGER NOT NULL REFERENCES form_field(id) ON DELETE CASCADE,
  site_id INTEGER REFERENCES site(id) ON DELETE CASCADE,
  source_id INTEGER REFERENCES source(id) ON DELETE CASCADE,
  from_ms INTEGER NOT NULL,
  value TEXT NOT NULL, -- null: no value from then on
  CHECK ((site_id IS NULL) <> (source_id IS NULL)),
  UNIQUE (field_id, site_id, from_ms),
  UNIQUE (field_id, source_id, from_ms)
) STRICT;
CREATE INDEX attribute_slice_by_site ON attribute_slice(site_id);
CREATE INDEX attribute_slice_by_source ON attribute_slice(source_id);
