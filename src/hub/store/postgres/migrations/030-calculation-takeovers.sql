ALTER TABLE calculation ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0; -- without progress, by nodes whose last one ended
