/** Fills a ledger with delivered files and files that need attention, by statements of its database. */
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "#core/clock.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";

const TRIGGERS = 10;
const DROPS = 8;

export const dropNames = Array.from({ length: DROPS }, (_, index) => `drop-${index}`);
export const triggerNames = Array.from({ length: TRIGGERS }, (_, index) => `trigger-${index + 1}`);

/** Of the last `waiting` files a half is unmatched, the others are quarantined; those before have left. */
export async function fillLedger(path: string, files: number, waiting: number): Promise<void> {
  await (await openSqliteLedger({ path, clock: systemClock })).close();
  const db = new DatabaseSync(path);
  db.exec("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -200000; BEGIN");
  const binding = db.prepare("INSERT INTO bindings (id, json) VALUES (?, ?)");
  for (let trigger = 1; trigger <= TRIGGERS; trigger += 1) binding.run(trigger, bindingOf(trigger));
  const first = files - waiting;
  const isUnmatched = `i > ${first} AND i / ${DROPS} % 2 = 1`;
  db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${files}),
    names (i, name) AS (SELECT i, printf('meters_%08d.csv', i * 7919 % 100000000) FROM n)
    INSERT INTO arrivals (id, drop_name, path, name, size, mtime, sha256, state, reason, seen_at, changed_at, gone_at,
        run_id)
    SELECT i, 'drop-' || (i % ${DROPS}), printf('2026/site-%d/', i % 500) || name, name, 1000, '1', printf('%064d', i),
      iif(${isUnmatched}, 'unmatched', 'matched'), 'claimed by trigger-' || (i % ${TRIGGERS} + 1),
      ${at("0")}, ${at("5")}, iif(i > ${first}, NULL, ${at("60")}),
      iif(${isUnmatched}, NULL, printf('r%025d', i)) FROM names`);
  db.exec(`INSERT INTO runs (id, arrival_id, drop_name, path, size, mtime, sha256, binding_id, lane, state, reason,
      mapped, accepted, stored, finish_plan, finished_at, settled, created_at, changed_at)
    SELECT run_id, id, drop_name, path, size, mtime, sha256, id % ${TRIGGERS} + 1, 'lane-' || (id % 50),
      iif(gone_at IS NULL, 'quarantined', 'confirmed'),
      CASE WHEN gone_at IS NULL THEN json_object('code', 'HG-MAP-00' || (id % 5 + 1), 'message', 'the value "' || id ||
        '" is no number', 'hint', 'Correct it.', 'place', json_object('row', id % 900, 'column', 'value')) END,
      96, iif(gone_at IS NULL, 0, 96), iif(gone_at IS NULL, 0, 96),
      iif(gone_at IS NULL, NULL, json_object('action', 'archive', 'to', 'done/' || path)), gone_at, 1, seen_at,
      changed_at FROM arrivals WHERE run_id IS NOT NULL`);
  db.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

/** An instant of the file `i`: one every half a minute. */
function at(seconds: string): string {
  return `strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + i * 30 + ${seconds}, 'unixepoch')`;
}

function bindingOf(trigger: number): string {
  return JSON.stringify({
    trigger: `trigger-${trigger}`,
    service: "sink",
    mapper: { name: "standard", version: "1.0.0", digest: "d" },
    settings: { timeZone: "Europe/Brussels" },
    rows: "strict",
    limits: { pointsMax: 1_000, bytesMax: 1_000_000 },
  });
}
