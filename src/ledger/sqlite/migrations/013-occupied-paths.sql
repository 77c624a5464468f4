-- Since when a finished file that changed cannot go back to its path, where another file is.
ALTER TABLE finished_files ADD COLUMN occupied_since TEXT;
CREATE INDEX finished_files_occupied ON finished_files (drop_name, place) WHERE occupied_since IS NOT NULL;
