-- A state for runs of which nobody could say in time whether they are stored.
ALTER TABLE runs DROP CONSTRAINT runs_state_check;
ALTER TABLE runs ADD CONSTRAINT runs_state_check CHECK (state IN ('claimed', 'fetched', 'opened', 'mapping', 'mapped',
  'delivering', 'accepted', 'confirmed', 'unconfirmed', 'empty', 'held', 'discarded', 'quarantined', 'cancelled'));
-- JSON of how long the service could be asked about the run, and how long not; null until that was counted.
ALTER TABLE runs ADD COLUMN confirm_clock words;

DROP INDEX runs_unsettled;
DROP INDEX runs_resting;
DROP INDEX runs_changed;
CREATE INDEX runs_unsettled ON runs (state, lane, id)
  WHERE settled = 0 AND (state = 'accepted' OR state = 'opened' OR state = 'unconfirmed');
CREATE INDEX runs_resting ON runs (state, id) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'unconfirmed' OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';
CREATE INDEX runs_changed ON runs (changed_at) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'unconfirmed' OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';

-- An unconfirmed run rests as well: any node may ask about it again.
DROP TRIGGER run_rests ON runs;
CREATE TRIGGER run_rests BEFORE UPDATE OF state ON runs FOR EACH ROW
  WHEN (NEW.state IN ('held', 'unconfirmed', 'quarantined', 'cancelled') AND OLD.state <> NEW.state)
  EXECUTE FUNCTION run_rests();

-- Those that had been accepted for ever without a word are asked about again.
UPDATE runs SET state = 'unconfirmed', settled = 0
  WHERE state = 'accepted' AND settled = 1 AND strpos(coalesce(reason, ''), '"HG-RUN-005"') > 0;
