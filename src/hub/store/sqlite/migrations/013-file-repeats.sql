-- A sender that did not get the answer for its file sends it again. Until then: null once it has got the answer.
ALTER TABLE stored_file ADD COLUMN unanswered_until_ms INTEGER;
-- When it last came again, and was not stored twice.
ALTER TABLE stored_file ADD COLUMN repeated_ms INTEGER;
CREATE INDEX stored_file_unanswered ON stored_file(account_id, name) WHERE unanswered_until_ms IS NOT NULL;
