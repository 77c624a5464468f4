-- An operation that failed stays whole in the queue, with its body.
ALTER TABLE outcome ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
