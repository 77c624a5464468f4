-- Finds the files of the last day that were replaced before they were finished.
CREATE INDEX events_replaced ON events (at) WHERE what = 'source.changed';
