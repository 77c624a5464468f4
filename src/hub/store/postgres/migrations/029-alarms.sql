-- Alarms: templates, the alarm of each template and variable (or file trigger), what became of them, and their views.
CREATE TABLE alarm_template (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  severity TEXT NOT NULL,
  kind TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  body TEXT NOT NULL,
  revision BIGINT NOT NULL,
  created_ms BIGINT NOT NULL,
  changed_ms BIGINT NOT NULL,
  -- Variables with larger ids are newer than the template: all of their points count.
  last_variable_id BIGINT NOT NULL
);
CREATE INDEX alarm_template_by_account ON alarm_template(account_id);

CREATE TABLE alarm (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  template_id BIGINT NOT NULL REFERENCES alarm_template(id) ON DELETE CASCADE,
  variable_id BIGINT REFERENCES variable(id) ON DELETE CASCADE,
  trigger_id BIGINT REFERENCES file_trigger(id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  since_ms BIGINT,
  value DOUBLE PRECISION,
  limit_words TEXT,
  -- Revision of the template that the memory belongs to.
  template_revision BIGINT NOT NULL,
  watermark_ms BIGINT,
  memory TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  -- Grows with each change, so that of two hubs one makes it.
  revision BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX alarm_by_variable ON alarm(template_id, variable_id) WHERE variable_id IS NOT NULL;
CREATE UNIQUE INDEX alarm_by_trigger ON alarm(template_id, trigger_id) WHERE trigger_id IS NOT NULL;
CREATE INDEX alarm_by_account ON alarm(account_id, state);
CREATE INDEX alarm_of_variable ON alarm(variable_id);
CREATE INDEX alarm_of_trigger ON alarm(trigger_id);

CREATE TABLE alarm_change (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  alarm_id BIGINT NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  template_id BIGINT NOT NULL,
  variable_id BIGINT,
  state TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  recorded_ms BIGINT NOT NULL,
  value DOUBLE PRECISION,
  limit_words TEXT,
  user_name TEXT
);
CREATE INDEX alarm_change_by_alarm ON alarm_change(alarm_id, id);
CREATE INDEX alarm_change_by_account ON alarm_change(account_id, id);

CREATE TABLE alarm_comment (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  alarm_id BIGINT NOT NULL REFERENCES alarm(id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  author TEXT NOT NULL,
  at_ms BIGINT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX alarm_comment_by_alarm ON alarm_comment(alarm_id, id);

CREATE TABLE alarm_view (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  name TEXT NOT NULL,
  template_views BOOLEAN NOT NULL,
  filter TEXT NOT NULL
);
CREATE INDEX alarm_view_by_account ON alarm_view(account_id);

-- What a change of an alarm sends: to a receiver of webhooks, or into a variable. Written with the change.
CREATE TABLE alarm_dispatch (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id BIGINT NOT NULL REFERENCES account(id),
  kind TEXT NOT NULL CHECK (kind IN ('webhook', 'variable')),
  target TEXT NOT NULL,
  body TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL
);
CREATE INDEX alarm_dispatch_due ON alarm_dispatch(next_ms);
CREATE INDEX alarm_dispatch_by_account ON alarm_dispatch(account_id);
