-- Why an alarm rests: it writes into what it watches, or changed again and again at one date. NULL: it does not.
ALTER TABLE alarm ADD COLUMN pause_cause TEXT;
ALTER TABLE alarm ADD COLUMN pause_words TEXT;
ALTER TABLE alarm ADD COLUMN paused_ms BIGINT;
