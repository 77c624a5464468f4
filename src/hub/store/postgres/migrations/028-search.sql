-- Words by which people search; triggers keep them, so that every writer of the structure does. Parents' words belong
-- to what is below them: the variables of a meter are found by its number.
CREATE TABLE search_word (
  entity TEXT NOT NULL,
  id BIGINT NOT NULL,
  account_id BIGINT NOT NULL REFERENCES account(id),
  words TSVECTOR NOT NULL, -- with one for the account, which no person can write
  PRIMARY KEY (entity, id)
);
CREATE INDEX search_word_by_word ON search_word USING gin(words);

-- Without case and accents, cut at whatever is no letter or digit. Words have a greatest length in PostgreSQL.
CREATE FUNCTION words_of(account_id BIGINT, given TEXT) RETURNS TSVECTOR STABLE LANGUAGE SQL AS $$
  SELECT array_to_tsvector(array_append(ARRAY(
    SELECT DISTINCT left(word, 60) FROM regexp_split_to_table(
      regexp_replace(normalize(folded(left(given, 10000)), NFD), '[\u0300-\u036f]', '', 'g'), '[[:punct:][:space:]]+'
    ) AS word WHERE word <> ''), '#' || account_id))
$$;

CREATE VIEW site_text AS
SELECT id, account_id, concat_ws(' ', name, street, postal_code, city) AS text FROM site;
CREATE VIEW source_text AS
SELECT source.id, source.account_id, source.site_id, concat_ws(' ', source.name, serial_number, ean, meter_number,
    localisation, source.tags, site.name) AS text
FROM source JOIN site ON site.id = source.site_id;
CREATE VIEW variable_text AS
SELECT variable.id, variable.account_id, variable.source_id, source.site_id, concat_ws(' ', variable.name,
    mapping_config, variable.tags, 'unitid' || unit_id, source.name, serial_number, ean, meter_number, source.tags,
    site.name) AS text
FROM variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id;

INSERT INTO search_word SELECT 'site', id, account_id, words_of(account_id, text) FROM site_text;
INSERT INTO search_word SELECT 'source', id, account_id, words_of(account_id, text) FROM source_text;
INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text;

CREATE FUNCTION note_site_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'site', id, account_id, words_of(account_id, text) FROM site_text WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  IF TG_OP = 'UPDATE' THEN
    IF OLD.name <> NEW.name THEN
      INSERT INTO search_word SELECT 'source', id, account_id, words_of(account_id, text) FROM source_text
        WHERE site_id = NEW.id
      ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
      INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
        WHERE site_id = NEW.id
      ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
    END IF;
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION note_source_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'source', id, account_id, words_of(account_id, text) FROM source_text
    WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
      WHERE source_id = NEW.id
    ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION note_variable_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_word SELECT 'variable', id, account_id, words_of(account_id, text) FROM variable_text
    WHERE id = NEW.id
  ON CONFLICT (entity, id) DO UPDATE SET words = excluded.words;
  RETURN NULL;
END
$$;
CREATE FUNCTION forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM search_word WHERE entity = TG_TABLE_NAME AND id = OLD.id;
  RETURN NULL;
END
$$;

CREATE TRIGGER site_words AFTER INSERT OR UPDATE OF name, street, postal_code, city ON site
FOR EACH ROW EXECUTE FUNCTION note_site_words();
CREATE TRIGGER source_words
AFTER INSERT OR UPDATE OF name, serial_number, ean, meter_number, localisation, tags, site_id ON source
FOR EACH ROW EXECUTE FUNCTION note_source_words();
CREATE TRIGGER variable_words AFTER INSERT OR UPDATE OF name, mapping_config, tags, unit_id, source_id ON variable
FOR EACH ROW EXECUTE FUNCTION note_variable_words();
CREATE TRIGGER site_words_removed AFTER DELETE ON site FOR EACH ROW EXECUTE FUNCTION forget_words();
CREATE TRIGGER source_words_removed AFTER DELETE ON source FOR EACH ROW EXECUTE FUNCTION forget_words();
CREATE TRIGGER variable_words_removed AFTER DELETE ON variable FOR EACH ROW EXECUTE FUNCTION forget_words();
