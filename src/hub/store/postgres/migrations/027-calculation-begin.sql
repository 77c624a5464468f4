ALTER TABLE calculation ADD COLUMN begin_ms BIGINT; -- of the outputs to calculate; null until it is known
