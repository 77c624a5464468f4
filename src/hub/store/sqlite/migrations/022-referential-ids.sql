-- Ids of referentials that public clients write: degree Celsius 28, percent 31, pushed data 72, an index 25. Each takes
-- the place of another one, so that every entity keeps the name of its unit and type.
CREATE TABLE referential_change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES account(id),
  field TEXT NOT NULL, -- view, fileTrigger: an expression or settings that name such ids
  old_id INTEGER NOT NULL, -- of a view or file trigger both are its own id
  new_id INTEGER NOT NULL,
  entities INTEGER NOT NULL, -- how many have it
  logged INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO referential_change (account_id, field, old_id, new_id, entities)
  SELECT account_id, 'unitId', unit_id,
    CASE unit_id WHEN 28 THEN 51 WHEN 51 THEN 28 WHEN 31 THEN 101 WHEN 101 THEN 31 END, count(*)
  FROM variable WHERE unit_id IN (28, 51, 31, 101) GROUP BY account_id, unit_id;
UPDATE variable SET unit_id = CASE unit_id WHEN 28 THEN 51 WHEN 51 THEN 28 WHEN 31 THEN 101 WHEN 101 THEN 31 END
  WHERE unit_id IN (28, 51, 31, 101);

INSERT INTO referential_change (account_id, field, old_id, new_id, entities)
  SELECT account_id, 'variableTypeId', variable_type_id,
    CASE variable_type_id WHEN 18 THEN 25 WHEN 25 THEN 18 END, count(*)
  FROM variable WHERE variable_type_id IN (18, 25) GROUP BY account_id, variable_type_id;
UPDATE variable SET variable_type_id = CASE variable_type_id WHEN 18 THEN 25 WHEN 25 THEN 18 END
  WHERE variable_type_id IN (18, 25);

INSERT INTO referential_change (account_id, field, old_id, new_id, entities)
  SELECT account_id, 'sourceTypeId', source_type_id, CASE source_type_id WHEN 72 THEN 114 WHEN 114 THEN 72 END, count(*)
  FROM source WHERE source_type_id IN (72, 114) GROUP BY account_id, source_type_id;
UPDATE source SET source_type_id = CASE source_type_id WHEN 72 THEN 114 WHEN 114 THEN 72 END
  WHERE source_type_id IN (72, 114);

INSERT INTO referential_change (account_id, field, old_id, new_id, entities)
  SELECT account_id, 'view', id, id, 1 FROM view WHERE renumbered(custom_filter) <> custom_filter;
UPDATE view SET custom_filter = renumbered(custom_filter) WHERE renumbered(custom_filter) <> custom_filter;

INSERT INTO referential_change (account_id, field, old_id, new_id, entities)
  SELECT account_id, 'fileTrigger', id, id, 1 FROM file_trigger WHERE renumbered(metadata) <> metadata;
UPDATE file_trigger SET metadata = renumbered(metadata) WHERE renumbered(metadata) <> metadata;
