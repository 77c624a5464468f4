-- Where the outcomes of the readings of a file are sent, as the sender asked.
ALTER TABLE stored_file ADD COLUMN webhook_url TEXT;
