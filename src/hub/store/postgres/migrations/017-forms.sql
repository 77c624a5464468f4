-- Forms: fields that an account gives to its sites or sources, and their values over time.
CREATE TABLE form (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  entity_type TEXT NOT NULL CHECK (entity_type IN ('Site', 'Source')),
  name TEXT NOT NULL,
  name_key TEXT NOT NULL, -- the name without regard to case
  type BIGINT NOT NULL,
  display_order BIGINT NOT NULL,
  UNIQUE (account_id, entity_type, name_key)
);

CREATE TABLE form_group (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  form_id BIGINT NOT NULL REFERENCES form(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  display_header TEXT, -- JSON: a text or a boolean
  display_order BIGINT NOT NULL
);
CREATE INDEX form_group_by_form ON form_group(form_id);

CREATE TABLE form_field (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id BIGINT NOT NULL REFERENCES form_group(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  type BIGINT NOT NULL,
  display_order BIGINT NOT NULL,
  is_list BOOLEAN NOT NULL,
  required BOOLEAN NOT NULL,
  time_sliced BOOLEAN NOT NULL,
  options TEXT, -- JSON array
  reference_to BIGINT
);
CREATE INDEX form_field_by_group ON form_field(group_id);

-- Values of fields that are not time-sliced, by form, group and field; those of sources are there already.
ALTER TABLE site ADD COLUMN client_data JSON;

CREATE TABLE attribute_slice (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  field_id BIGINT NOT NULL REFERENCES form_field(id) ON DELETE CASCADE,
  site_id BIGINT REFERENCES site(id) ON DELETE CASCADE,
  source_id BIGINT REFERENCES source(id) ON DELETE CASCADE,
  from_ms BIGINT NOT NULL,
  value JSON NOT NULL, -- null: no value from then on
  CHECK ((site_id IS NULL) <> (source_id IS NULL)),
  UNIQUE (field_id, site_id, from_ms),
  UNIQUE (field_id, source_id, from_ms)
);
CREATE INDEX attribute_slice_by_site ON attribute_slice(site_id);
CREATE INDEX attribute_slice_by_source ON attribute_slice(source_id);
