-- The user who made a link to the password of another one; null: it is the user's own, or was made before.
ALTER TABLE one_time_link ADD COLUMN maker_id BIGINT;
