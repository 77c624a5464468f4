/** A large file is mapped by two threads of its host, as long as no other file needs one of them. */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import type { MapJob, MappingPool } from "#mapping/contract.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { OPTIONS } from "./pool-rig.ts";

const pools: MappingPool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

const ROWS = 20_000;
/** More rows than between two new targets, and fewer than what is left out behind the head of the file. */
const GAP = 1_000;

/** A mapper that does something in the thread that leaves out rows, and something else with each row. */
function moduleThat(does: string, withRow: string): string {
  return `import { existsSync, writeFileSync } from "node:fs";
import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "parts", summary: "of a test", async map({ file, emit, eachRow }) {
  let before = -1;
  const plan = { width: 3, date: { column: 0 }, values: [2], by: [1], independent: true };
  await eachRow(file.csv(), ([date = "", sourceName = "", text = ""]) => {
    if (date === "date") return;
    const value = Number(text);
    if (value > before + ${GAP}) { ${does} }
    ${withRow}
    before = value;
    emit({ target: { sourceName, mappingConfig: "kWh" }, date, value });
  }, () => plan);
} });`;
}

async function poolThat(does: string, { count = 2, withRow = (_mark: string): string => "" } = {}) {
  const folder = await temporaryFolder();
  const mappers = join(folder, "mappers");
  const segments = join(folder, "segments");
  for (const one of [mappers, segments]) await mkdir(one);
  const mark = join(segments, "mark");
  const marks = JSON.stringify(mark);
  await writeFile(join(mappers, "parts.ts"), moduleThat(`writeFileSync(${marks}, "x"); ${does}`, withRow(marks)));
  const lines = Array.from({ length: ROWS }, (_, nth) => {
    const date = new Date(Date.UTC(2026, 0, 1) + nth * 60_000).toISOString();
    return `${date},M-${Math.floor(nth / 200)},${nth}\n`;
  });
  await writeFile(join(folder, "input.csv"), `date,name,value\n${lines.join("")}`);
  const means = { writable: [segments], rangedBytesMin: 100_000 };
  const printed: unknown[] = [];
  const log = createLog("info", { write: (line: string) => printed.push(JSON.parse(line).msg) });
  const pool = createMappingPool({ ...OPTIONS, count }, [mappers], log, means);
  pools.push(pool);
  const digest = await digestMapper((await locateMapper([mappers], "parts")) ?? "");
  const job = (name: string): MapJob => ({
    ...{ runId: name, inputPath: join(folder, "input.csv"), fileName: "input.csv", filePath: "input.csv" },
    binding: {
      mapper: { name: "parts", version: "0.0.0", digest },
      ...{ settings: {}, rows: "strict", limits: { pointsMax: 5000, bytesMax: 1_000_000 } },
    },
    segmentPath: join(segments, name),
  });
  const map = (name: string, signal = new AbortController().signal) => onlyOne(pool.map([job(name)], signal));
  return { map, mark, segments, printed };
}

it("gives the segment of one thread", async () => {
  const two = await poolThat("");
  const one = await poolThat("", { count: 1 });
  const [result, expected] = [await two.map("run"), await one.map("run")];
  expect(result).toMatchObject({ status: "mapped", points: ROWS });
  expect(result).toEqual(expected);
  expect(await readFile(join(two.segments, "run"))).toEqual(await readFile(join(one.segments, "run")));
  expect([existsSync(two.mark), existsSync(one.mark)]).toEqual([true, false]);
  expect((await readdir(two.segments)).sort()).toEqual(["mark", "run"]);
});

it.each(["process.exit(3);", "throw new Error('x');", "throw { toString: 1 };"])(
  "is mapped by one thread when the other ends by %s",
  async (does) => {
    const { map, mark, segments } = await poolThat(does);
    for (const name of ["run", "later"])
      expect(await map(name)).toMatchObject({ status: "mapped", points: ROWS, rejectedCount: 0 });
    expect(existsSync(mark)).toBe(true);
    expect((await readdir(segments)).sort()).toEqual(["later", "mark", "run"]);
  },
);

it("prints what a mapper prints about any row", async () => {
  const printing = { withRow: () => 'if (value === 19_000) console.log("an odd row");' };
  const { map, mark, printed } = await poolThat("", printing);
  expect(await map("run")).toMatchObject({ status: "mapped", points: ROWS });
  expect(existsSync(mark)).toBe(true);
  expect(printed.filter((words) => String(words).includes("an odd row"))).toHaveLength(1);
});

it("ends a thread that never returns from a range, once the range is not needed", async () => {
  const untilMarked = (mark: string) => `if (value === 9_000) {
    const until = Date.now() + 3_000;
    while (!existsSync(${mark}) && Date.now() < until);
    throw new Error("a fault of the first range");
  }`;
  const { map, mark } = await poolThat("for (;;);", { withRow: untilMarked });
  const mapsRange = async () => {
    await rm(mark, { force: true });
    expect(await map("run")).toMatchObject({ status: "failed" });
    return existsSync(mark);
  };
  expect(await mapsRange()).toBe(true);
  await expect.poll(mapsRange, { timeout: 30_000 }).toBe(true);
});

it("maps files side by side in one thread each", async () => {
  const { map } = await poolThat("");
  const results = await Promise.all(["a", "b", "c", "d"].map((name) => map(name)));
  for (const result of results) expect(result).toEqual({ ...results[0] });
});

it("is cancelled while the other thread maps", async () => {
  const { map, mark, segments } = await poolThat("for (;;);");
  const stop = new AbortController();
  const outcome = Promise.allSettled([map("run", stop.signal)]);
  await expect.poll(() => existsSync(mark), { timeout: 60_000 }).toBe(true);
  stop.abort();
  expect((await outcome)[0]).toMatchObject({ status: "rejected", reason: { code: "HG-MAP-013" } });
  expect(await readdir(segments)).toEqual(["mark"]);
});
