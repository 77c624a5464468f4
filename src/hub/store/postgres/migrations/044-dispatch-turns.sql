-- Dispatches of alarms are taken by turns of their accounts.
DROP INDEX alarm_dispatch_by_account;
CREATE INDEX alarm_dispatch_by_account ON alarm_dispatch(account_id, next_ms, id);
