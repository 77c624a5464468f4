-- Lanes in which a run is held, or was. Whoever lets such a run go on, and whoever begins to deliver a later one, changes the row of the
-- lane: of two nodes that do so at the same moment without seeing each other, the server has one do it again.
CREATE TABLE lane_turns (
  lane words PRIMARY KEY,
  turns bigint NOT NULL DEFAULT 0
);
INSERT INTO lane_turns (lane) SELECT DISTINCT lane FROM runs WHERE state = 'held';

CREATE FUNCTION lane_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'held' THEN
    INSERT INTO lane_turns (lane) VALUES (NEW.lane) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE lane_turns SET turns = turns + 1 WHERE lane = NEW.lane;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER lane_turn AFTER UPDATE OF state ON runs FOR EACH ROW
  WHEN (OLD.state <> NEW.state AND (NEW.state IN ('held', 'delivering') OR OLD.state = 'held'))
  EXECUTE FUNCTION lane_turn();

-- Earlier versions did not note whether an attempt may be stored although it was not answered clearly.
UPDATE batches SET answer = answer || '; an attempt without a clear answer may be stored'
  WHERE state IN ('ready', 'sending') AND attempts > 0 AND answer IS NOT NULL AND answer NOT LIKE '%; an attempt without a clear answer may be stored';
