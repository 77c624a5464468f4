-- Where the sender shows the origin of its readings.
ALTER TABLE operation ADD COLUMN trace_link TEXT;
