-- The last complete list of the triggers of each service, as the service listed them.
CREATE TABLE trigger_lists (
  source words PRIMARY KEY,
  listed_at words NOT NULL,
  triggers words NOT NULL -- JSON array
);
