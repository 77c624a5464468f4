-- Words by which people search; triggers keep them, so that every writer of the structure does. Parents' words belong
-- to what is below them: the variables of a meter are found by its number.
CREATE VIEW site_text AS SELECT id, concat_ws(' ', name, street, postal_code, city) AS text FROM site;
CREATE VIEW source_text AS
SELECT source.id, source.site_id, concat_ws(' ', source.name, serial_number, ean, meter_number, localisation,
    source.tags, site.name) AS text
FROM source JOIN site ON site.id = source.site_id;
CREATE VIEW variable_text AS
SELECT variable.id, variable.source_id, source.site_id, concat_ws(' ', variable.name, mapping_config, variable.tags,
    'unitid' || unit_id, source.name, serial_number, ean, meter_number, source.tags, site.name) AS text
FROM variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id;

CREATE VIRTUAL TABLE site_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE source_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE variable_search USING fts5(
  text, content='', contentless_delete=1, detail=none, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
INSERT INTO site_search(rowid, text) SELECT id, text FROM site_text;
INSERT INTO source_search(rowid, text) SELECT id, text FROM source_text;
INSERT INTO variable_search(rowid, text) SELECT id, text FROM variable_text;

CREATE TRIGGER site_search_added AFTER INSERT ON site BEGIN
  INSERT INTO site_search(rowid, text) SELECT id, text FROM site_text WHERE id = new.id;
END;
CREATE TRIGGER site_search_changed AFTER UPDATE OF name, street, postal_code, city ON site BEGIN
  INSERT OR REPLACE INTO site_search(rowid, text) SELECT id, text FROM site_text WHERE id = new.id;
END;
CREATE TRIGGER site_search_renamed AFTER UPDATE OF name ON site WHEN old.name <> new.name BEGIN
  INSERT OR REPLACE INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE site_id = new.id;
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE site_id = new.id;
END;
CREATE TRIGGER site_search_removed AFTER DELETE ON site BEGIN
  DELETE FROM site_search WHERE rowid = old.id;
END;

CREATE TRIGGER source_search_added AFTER INSERT ON source BEGIN
  INSERT INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE id = new.id;
END;
CREATE TRIGGER source_search_changed
AFTER UPDATE OF name, serial_number, ean, meter_number, localisation, tags, site_id ON source BEGIN
  INSERT OR REPLACE INTO source_search(rowid, text) SELECT id, text FROM source_text WHERE id = new.id;
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE source_id = new.id;
END;
CREATE TRIGGER source_search_removed AFTER DELETE ON source BEGIN
  DELETE FROM source_search WHERE rowid = old.id;
END;

CREATE TRIGGER variable_search_added AFTER INSERT ON variable BEGIN
  INSERT INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE id = new.id;
END;
CREATE TRIGGER variable_search_changed
AFTER UPDATE OF name, mapping_config, tags, unit_id, source_id ON variable BEGIN
  INSERT OR REPLACE INTO variable_search(rowid, text) SELECT id, text FROM variable_text WHERE id = new.id;
END;
CREATE TRIGGER variable_search_removed AFTER DELETE ON variable BEGIN
  DELETE FROM variable_search WHERE rowid = old.id;
END;
