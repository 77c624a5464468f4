-- Versions kept of each point of the variable; null: as its account has it.
ALTER TABLE variable ADD COLUMN versions_max INTEGER;
