-- Whoever forgets a run asks whether a file names it, and whoever forgets a file whether something lies at its path: without these the
-- database looks through all files for each.
CREATE INDEX arrivals_run ON arrivals (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX arrivals_inside ON arrivals (drop_name, path) WHERE gone_at IS NULL AND parent_id IS NOT NULL;
