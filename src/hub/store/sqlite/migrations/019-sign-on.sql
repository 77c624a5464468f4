-- Who a user is at a provider of single sign-on, which never gives a subject to another person.
CREATE TABLE external_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES hub_user(id) ON DELETE CASCADE,
  linked_ms INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) WITHOUT ROWID, STRICT;
CREATE INDEX external_identity_by_user ON external_identity(user_id);
