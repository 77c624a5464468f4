-- Mails are sent by turns of their accounts.
CREATE INDEX mail_by_account ON mail((coalesce(account_id, 0)), next_ms, id) WHERE state = 'waiting';

-- Files are scanned by turns of their accounts.
DROP INDEX stored_file_unscanned;
CREATE INDEX stored_file_unscanned ON stored_file(account_id, id) WHERE scan = 'waiting';
