-- How often a file was offered to the triggers: what becomes of an earlier offer no longer counts.
ALTER TABLE stored_file ADD COLUMN offers BIGINT NOT NULL DEFAULT 1;
