-- Receivers of alarms have shares of the deliveries, by account and host.
ALTER TABLE alarm_dispatch ADD COLUMN host TEXT NOT NULL DEFAULT '';
