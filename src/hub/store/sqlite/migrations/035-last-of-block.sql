-- The value at `last_ms`, so that the latest point is found without unpacking. NULL: an earlier version wrote it.
ALTER TABLE point_block ADD COLUMN last_value REAL;
