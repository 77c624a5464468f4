-- A search for a part of a path goes through all files in their order: it reads a seventh of the pages of the table.
CREATE INDEX arrivals_path ON arrivals (id, path);
