-- A state for runs of which nobody could say in time whether they are stored. The check of a column cannot be changed, so the column is
-- replaced; the indexes have its name and are made again, with the new state where they list the states at rest.
DROP INDEX runs_intake;
DROP INDEX runs_unmapped;
DROP INDEX runs_delivery;
DROP INDEX runs_unsettled;
DROP INDEX runs_unfinished;
DROP INDEX runs_resting;
DROP INDEX runs_changed;

ALTER TABLE runs RENAME COLUMN state TO former_state;
ALTER TABLE runs ADD COLUMN state TEXT NOT NULL DEFAULT 'claimed' CHECK (state IN ('claimed', 'fetched', 'opened', 'mapping', 'mapped',
  'delivering', 'accepted', 'confirmed', 'unconfirmed', 'empty', 'held', 'discarded', 'quarantined', 'cancelled'));
-- JSON of how long the service could be asked about the run, and how long not; null until that was counted.
ALTER TABLE runs ADD COLUMN confirm_clock TEXT;
-- Those that had been accepted for ever without a word are asked about again.
UPDATE runs SET state = CASE WHEN former_state = 'accepted' AND settled = 1 AND instr(coalesce(reason, ''), '"HG-RUN-005"') > 0
    THEN 'unconfirmed' ELSE former_state END;
UPDATE runs SET settled = 0 WHERE state = 'unconfirmed';
ALTER TABLE runs DROP COLUMN former_state;

CREATE INDEX runs_intake ON runs (state, drop_name, id) WHERE state = 'claimed' OR state = 'fetched' OR state = 'mapping';
CREATE INDEX runs_unmapped ON runs (lane, id) WHERE state = 'claimed' OR state = 'fetched' OR state = 'mapping';
CREATE INDEX runs_delivery ON runs (state, lane, id, target_kinds) WHERE state = 'mapped' OR state = 'delivering' OR state = 'held';
CREATE INDEX runs_unsettled ON runs (state, lane, id)
  WHERE settled = 0 AND (state = 'accepted' OR state = 'opened' OR state = 'unconfirmed');
CREATE INDEX runs_unfinished ON runs (state, drop_name, id) WHERE finished_at IS NULL AND (state = 'opened' OR state = 'confirmed'
  OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled');
CREATE INDEX runs_resting ON runs (state, id) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'unconfirmed' OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';
CREATE INDEX runs_changed ON runs (changed_at) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'unconfirmed' OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';
