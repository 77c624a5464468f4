/** Lists of commands that show a part say of how many, and how to see the rest. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "#core/clock.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { BINDING, claimed, record, sight } from "../ledger/fixtures.ts";
import { headgate } from "../runs/in-process.ts";

let folder: string;
let ledger: Ledger;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const path = join(folder, "ledger.sqlite");
  const url = "http://127.0.0.1:9";
  const credentials = { clientId: "c", clientSecret: "s", username: "u", password: "p" };
  const settings = {
    ledger: { kind: "sqlite", path },
    spool: { path: join(folder, "spool") },
    services: [{ name: "main", base: url, push: `${url}/push`, token: `${url}/token`, credentials }],
    drops: ["field", "other"].map((name) => ({ name, kind: "local", path: join(folder, name) })),
    triggers: [
      { name: "monthly", mapper: "standard", fileNamePatternMatches: [{ filterType: "EndsWith", value: "x" }] },
    ],
  };
  writeFileSync(join(folder, "gateway.yaml"), stringify(settings));
  ledger = await openLedger({ kind: "sqlite", path }, { clock: systemClock });
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const run = (...args: string[]) => headgate(...args, "-c", join(folder, "gateway.yaml"));
/** As JSON, with what stands beside it. */
async function list(...args: string[]): Promise<{ items: Record<string, unknown>[]; note: string }> {
  const { stdout, stderr } = await run(...args, "--json");
  return { items: JSON.parse(stdout), note: stderr };
}
/** Files of one name in folders of their own. */
const sightMany = async (count: number, drop: string) => {
  for (let nth = 0; nth < count; nth += 1) await sight(ledger, `${nth}/a.csv`, drop);
};

test("`runs --waiting` continues behind the mark that it names", async () => {
  await sightMany(3, "field");
  await sightMany(1, "other");
  await claimed(ledger, "b.csv");
  const first = await list("runs", "--waiting", "--limit", "2");
  expect(first.items.map(({ path }) => path)).toEqual(["0/a.csv", "1/a.csv", "0/a.csv", "b.csv"]);
  expect(first.note).toMatch(/^4 of 5 files that wait; `--limit 5` shows all, `--after field:\d+` the next\n$/);
  const mark = /--after (\S+)`/.exec(first.note)?.[1] ?? "";
  const { items } = await list("runs", "--waiting", "--limit", "2", "--after", mark);
  expect(items.map(({ path }) => path)).toEqual(["2/a.csv"]);
});

test("`trace` names the number of files that have a name, and shows more of them on request", async () => {
  await sightMany(52, "field");
  const cut = await list("trace", "a.csv");
  expect([cut.items.length, cut.note]).toEqual([50, "50 of 52 files; `--limit 52` shows all\n"]);
  const words = (await run("trace", "a.csv", "--no-service")).stdout;
  expect(words.endsWith("50 of 52 files; `--limit 52` shows all\n")).toBe(true);
  const all = await list("trace", "a.csv", "--limit", "52");
  expect([all.items.length, all.note]).toEqual([52, ""]);
});

test("`runs --state duplicate` counts the duplicates alone among the runs that were given up", async () => {
  for (const [nth, code] of ["HG-RUN-001", "HG-RUN-010", "HG-RUN-001", "HG-RUN-001", "HG-RUN-010"].entries()) {
    const { id } = await claimed(ledger, `${nth}.csv`);
    await ledger.advanceArrival((await ledger.run(id))?.arrivalId ?? 0, "duplicate", "the same bytes");
    await ledger.advanceRun(id, "claimed", "cancelled", { reason: { code, message: "" }, detail: "" });
  }
  const duplicates = await list("runs", "--state", "duplicate", "--limit", "2");
  expect(duplicates.items.map(({ path }) => path)).toEqual(["3.csv", "2.csv"]);
  expect(duplicates.note).toContain("2 of 3 runs; ");
  const rest = await list("runs", "--state", "duplicate", "--after", String(duplicates.items.at(-1)?.["id"]));
  expect(rest.items.map(({ path }) => path)).toEqual(["0.csv"]);
  expect((await list("runs", "--state", "cancelled", "--limit", "1")).note).toContain("1 of 2 runs; ");
  expect((await list("runs", "--state", "cancelled,duplicate", "--limit", "1")).note).toContain("1 of 5 runs; ");
});

test("`provision` takes all held runs, also of more than a thousand", async () => {
  const poll = await ledger.beginPoll("field");
  const paths = Array.from({ length: 1_002 }, (_, nth) => ({ path: `${nth}.csv`, size: 1, mtime: "1" }));
  const sightings = await poll.record(paths);
  await poll.abandon();
  const opened = await ledger.openRuns(
    sightings.map(({ arrival: { id } }) => ({
      ...{ arrivalId: id, binding: BINDING },
      ...{ lane: `lane ${id}`, lanes: [`lane ${id}`] },
    })),
  );
  const reason = { code: "HG-GUARD-001", message: "it is missing" };
  const ids = (await ledger.runsIn(["claimed"])).map(({ id }) => id);
  expect([opened.length, ids.length]).toEqual([1_002, 1_002]);
  const states = ["fetched", "mapping", "mapped"] as const;
  const through = states.map((to) => ({ to, change: { detail: "" } }));
  await ledger.advanceRuns(
    ids.map((id) => ({
      ...{ id, from: "claimed", mapped: record(["A"]) },
      through: through.map((one) => (one.to === "fetched" ? { ...one, change: { sha256: id } } : one)),
    })),
  );
  await ledger.advanceRuns(
    ids.map((id) => ({ id, from: "mapped", through: [{ to: "held", change: { reason, detail: "" } }] })),
  );
  expect((await list("provision", "--dry-run")).items).toHaveLength(1_002);
});
