ALTER TABLE calculation ADD COLUMN begin_ms INTEGER; -- of the outputs to calculate; null until it is known
