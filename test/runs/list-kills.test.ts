/**
 * A process killed while it takes many files at once: whatever it left, each file alone is gone on with, and
 * nothing is lost.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { type Drop, fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { keptSegmentFiles, linesOf } from "#gateway/spool/segment-files.ts";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import { publishSegment } from "#mapping/segment/publish.ts";
import { entryAt, never } from "../drops/field.ts";
import { laySegment } from "../spool/segment-layout.ts";
import type { ListOrder } from "./list-child.ts";

const NAMES = ["a.csv", "in/b.csv", "in/c.csv"];
const RUNS = ["01m7y3wv7m37a23mgyr2g8n1r1", "01m7y3wv7m37a23mgyr2g8n1r2", "01m7y3wv7m37a23mgyr2g8n1r3"];
const contentOf = (name: string) => `content of ${name}\n`.repeat(name === "a.csv" ? 1000 : 3);

let ground: string;
let root: string;
let drop: Drop;
let spool: Spool;
beforeEach(async () => {
  ground = realpathSync(mkdtempSync(join(tmpdir(), "headgate-")));
  root = join(ground, "drop");
  mkdirSync(join(root, "in"), { recursive: true });
  for (const name of NAMES) writeFileSync(join(root, name), contentOf(name));
  drop = await createDrop(dropOptions.parse({ kind: "local", name: "field", path: root, watch: false }), {
    log: silentLog,
  });
  const keepInputs = { age: 1e12, size: 1e12 };
  spool = await openSpool({ path: join(ground, "spool"), budget: 1e9, headroom: 0, keepInputs });
});
afterEach(async () => {
  await drop.close();
  await spool.close();
  rmSync(ground, { recursive: true });
});

const entries = () => Promise.all(NAMES.map((name) => entryAt(drop, name)));

function killAt(point: string, order: Omit<ListOrder, "root" | "spool">): void {
  const words = JSON.stringify({ root, spool: spool.root, ...order });
  const child = spawnSync(process.execPath, [join(import.meta.dirname, "list-child.ts"), point, words]);
  expect({ end: child.signal, said: child.stderr.toString() }).toEqual({ end: "SIGKILL", said: "" });
}

test("at drops.list.copied each file is fetched whole by itself", async () => {
  const wanted = await entries();
  killAt("drops.list.copied", { fetch: { entries: wanted, destination: spool.newSegment(RUNS[0] ?? "") } });
  for (const [at, entry] of wanted.entries()) {
    const destination = spool.inputPath(RUNS[at] ?? "");
    expect((await fetchFile(drop, entry, destination, never)).bytes).toBe(entry.size);
    expect(readFileSync(destination, "utf8")).toBe(contentOf(entry.path));
  }
  await spool.sweep();
  expect(readdirSync(join(spool.root, "segments"))).toEqual([]);
});

test("at segment.named a segment has all of its names or some, each of them whole, and gets them again", async () => {
  const part = spool.newSegment(RUNS[0] ?? "");
  const paths = RUNS.map((run) => spool.segmentPath(run));
  writeFileSync(part, "a segment");
  killAt("segment.named#2", { publish: { part, paths, isShared: true } });
  await spool.sweep();
  const named = readdirSync(join(spool.root, "segments"));
  expect(named).toEqual(RUNS.slice(0, 2).map((run) => `${run}.segment`));
  const again = spool.newSegment(RUNS[0] ?? "");
  writeFileSync(again, "the same segment once more");
  const published = await publishSegment({ part: again, paths, isShared: true });
  expect(published.map(({ status }) => status)).toEqual(paths.map(() => "fulfilled"));
  rmSync(again);
  expect(readdirSync(join(spool.root, "segments"))).toEqual(RUNS.map((run) => `${run}.segment`));
  for (const path of paths) expect(readFileSync(path, "utf8")).toBe("the same segment once more");
});

test.each(["drops.finish.before-rename#2", "drops.list.moved", "drops.finish.after-rename#2"])(
  "at %s each file is archived or deleted once",
  async (point) => {
    const wanted = (await entries()).map((entry, at) => ({
      entry,
      plan: at === 2 ? ({ action: "delete" } as const) : planFinish({ action: "archive", to: "archive" }, entry, "R"),
    }));
    killAt(point, { finish: wanted });
    for (const { entry, plan } of wanted) expect(await finishFile(drop, entry, plan, never)).toBe("done");
    const left = readdirSync(root, { recursive: true }).map(String).toSorted();
    expect(left).toEqual(["archive", "archive/a.R.csv", "archive/in", "archive/in/b.R.csv", "in"]);
    expect(readFileSync(join(root, "archive/in/b.R.csv"), "utf8")).toBe(contentOf("in/b.csv"));
  },
);

type Layout = "small" | "compressed" | "shared";
const KEPT_OF: Readonly<Record<Layout, readonly string[]>> = {
  small: [".input", ".segment"],
  compressed: [".about", ".input", ".segment.rows", ".zst"],
  shared: [".segment"],
};

test.each<[string, Layout]>([
  ["spool.list.kept", "small"],
  ["spool.list.moved#2", "small"],
  ["spool.list.kept", "compressed"],
  ["spool.list.moved#2", "compressed"],
  ["spool.list.moved#2", "shared"],
])("at %s each run is retired by itself, with all that is to be kept of it (%s)", async (point, layout) => {
  const contents = NAMES.map((name) => contentOf(name));
  const rowsText = (run: string) => `${run}.rows\n`;
  const laid = RUNS.map((runId, at) => ({
    runId,
    input: layout === "shared" ? Buffer.from(contents[at] ?? "") : null,
    batches: [Buffer.from(runId.repeat(layout === "compressed" ? 1000 : 1))],
    rows: () => rowsText(runId),
  }));
  if (layout === "shared") laySegment(spool, laid);
  else
    for (const [at, run] of laid.entries()) {
      laySegment(spool, [run]);
      writeFileSync(spool.inputPath(run.runId), contents[at] ?? "");
    }
  killAt(point, { retire: RUNS });
  await spool.sweep();
  for (const run of RUNS) await spool.retire([run]);
  expect(await spool.residents()).toEqual(new Set());
  expect(readdirSync(join(spool.root, "kept")).toSorted()).toEqual(
    RUNS.flatMap((run, at) =>
      KEPT_OF[layout].map((end) => `${run}${at === 0 && end === ".input" ? ".input.zst" : end}`),
    ).toSorted(),
  );
  for (const [at, run] of RUNS.entries()) {
    expect(await spool.restoreInput(run)).toBe(true);
    expect(readFileSync(spool.inputPath(run), "utf8")).toBe(contents[at]);
    const { rows, about } = keptSegmentFiles(join(spool.root, "kept", run));
    if (rows === null || about === null) throw new Error("it is not kept as a whole");
    expect(await Array.fromAsync(linesOf(rows))).toEqual([`${run}.rows`]);
    expect((await Array.fromAsync(linesOf(about)))[0]).toContain('"count":0');
  }
});
