ALTER TABLE outcome ADD COLUMN notices TEXT; -- JSON array of texts; null: none
