-- Host keys of servers that a person approved, for all nodes.
CREATE TABLE approved_keys (
  drop_name words NOT NULL,
  lines words NOT NULL, -- of a known_hosts file: a comment and an entry
  approved_at words NOT NULL,
  PRIMARY KEY (drop_name, lines)
);
