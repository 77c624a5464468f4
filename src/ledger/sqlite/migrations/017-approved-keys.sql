-- Host keys of servers that a person approved, for all nodes.
CREATE TABLE approved_keys (
  drop_name TEXT NOT NULL,
  lines TEXT NOT NULL, -- of a known_hosts file: a comment and an entry
  approved_at TEXT NOT NULL,
  PRIMARY KEY (drop_name, lines)
) STRICT, WITHOUT ROWID;
