-- Each state that a run passed cost seven indexes over all runs for ever. Now a run on its way is in those of its desk alone, and the long
-- ones take it when it comes to rest. A query uses one whose condition it has as it stands here: a state by its name, or all of them.
DROP INDEX arrivals_content;
DROP INDEX arrivals_state;
DROP INDEX arrivals_changed;
DROP INDEX runs_state;
DROP INDEX runs_drop;
DROP INDEX runs_lane;
DROP INDEX runs_unfinished;
DROP INDEX runs_unsettled;
DROP INDEX runs_open;
DROP INDEX runs_changed;

CREATE INDEX arrivals_waiting ON arrivals (drop_name, state, id)
  WHERE gone_at IS NULL AND (state = 'settling' OR state = 'unmatched' OR state = 'duplicate' OR state = 'skipped');
CREATE INDEX arrivals_changed ON arrivals (changed_at) WHERE state <> 'settling';

CREATE INDEX runs_intake ON runs (state, drop_name, id) WHERE state = 'claimed' OR state = 'fetched' OR state = 'mapping';
-- For the order of lanes.
CREATE INDEX runs_unmapped ON runs (lane, id) WHERE state = 'claimed' OR state = 'fetched' OR state = 'mapping';
CREATE INDEX runs_delivery ON runs (state, lane, id, target_kinds) WHERE state = 'mapped' OR state = 'delivering' OR state = 'held';
CREATE INDEX runs_unsettled ON runs (state, lane, id) WHERE settled = 0 AND (state = 'accepted' OR state = 'opened');
CREATE INDEX runs_unfinished ON runs (state, drop_name, id) WHERE finished_at IS NULL AND (state = 'opened' OR state = 'confirmed'
  OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled');
CREATE INDEX runs_resting ON runs (state, id) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';
CREATE INDEX runs_changed ON runs (changed_at) WHERE state = 'opened' OR state = 'accepted' OR state = 'confirmed'
  OR state = 'empty' OR state = 'discarded' OR state = 'quarantined' OR state = 'cancelled';

-- As before, and asked of containers alone.
CREATE OR REPLACE FUNCTION entries_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM arrivals WHERE parent_id = NEW.id) THEN RETURN NULL; END IF;
  WITH RECURSIVE inside (id) AS (
    SELECT id FROM arrivals WHERE parent_id = NEW.id
    UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id
  ), left_now AS (
    UPDATE arrivals SET gone_at = NEW.gone_at WHERE gone_at IS NULL AND id IN (SELECT id FROM inside) RETURNING id
  )
  INSERT INTO events (at, arrival_id, what, detail)
    SELECT NEW.gone_at, id, 'arrival.gone', 'its container has gone from the drop' FROM left_now ORDER BY id;
  RETURN NULL;
END $$;
