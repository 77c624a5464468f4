-- Whose outputs the operation stores; null: a push.
ALTER TABLE operation ADD COLUMN calculation_id INTEGER;
