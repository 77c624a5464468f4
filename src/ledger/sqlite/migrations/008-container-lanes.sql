-- The lanes that the entries of a container may come to, until all of them have runs of their own: whatever came after it waits for them.
CREATE TABLE container_lanes (
  lane TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (lane, run_id)
);
CREATE INDEX container_lanes_run ON container_lanes (run_id);
CREATE INDEX arrivals_unclaimed ON arrivals (parent_id) WHERE parent_id IS NOT NULL AND state = 'settling';
