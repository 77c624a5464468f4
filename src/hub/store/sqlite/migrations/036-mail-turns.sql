-- Mails are sent by turns of their accounts.
CREATE INDEX mail_by_account ON mail((coalesce(account_id, 0)), next_ms, id) WHERE state = 'waiting';
