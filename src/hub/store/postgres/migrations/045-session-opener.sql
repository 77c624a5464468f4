-- Sessions are listed and counted by the person who opened them.
CREATE INDEX session_by_opener ON session((COALESCE(impersonator_id, user_id)));
