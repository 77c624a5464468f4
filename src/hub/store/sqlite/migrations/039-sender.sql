-- The user who sent the file: names can go to other users.
ALTER TABLE stored_file ADD COLUMN created_by_id INTEGER;
