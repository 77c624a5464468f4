/**
 * Files of many shapes through the real command to a service that counts each reading: every reading comes once, with
 * the value that the file has for it last. `HEADGATE_ROWS=10000000` plays files of ten million rows.
 */
import { mkdir, mkdtemp, open, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CountingService, type Grid } from "./counting-service.ts";
import { HeadgateProcess } from "./processes.ts";
import { localDrop } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

const ROWS = Number(process.env["HEADGATE_ROWS"] ?? 200_000);
const SERIES = 25;
const STEP_MS = 1_800_000;
const ZONE = "Europe/Brussels";
/** Both changes of clocks are within the 8,000 half hours that follow. */
const START_MS = Date.UTC(2024, 9, 20);
const BLOCK = 10_000;
const FOUR = 4;
const SMALL = 200;

vi.setConfig({ ...PATIENTLY, testTimeout: Math.max(300_000, ROWS / 10) });

interface Row {
  readonly series: number;
  readonly step: number;
  readonly value: string;
}

interface Shape {
  readonly name: string;
  readonly header: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly mapper?: string;
  readonly files?: number;
  /** The lines of a file, a block at a time. */
  lines(grid: Grid, file: number): Iterable<string>;
  /** Thousandths that a correction adds to the value of a reading. */
  added?(index: number): number;
}

let service: CountingService;
let folder: string;
beforeAll(async () => {
  service = await CountingService.start();
  folder = await realpath(await mkdtemp(join(tmpdir(), "headgate-shapes-")));
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

const thousandthsOf = (series: number, step: number) => (step * 7919 + series * 104_729) % 900_000;
const valueText = (thousandths: number) => (thousandths / 1000).toFixed(3);

/** Of every `files`-th series or step, from the one of the number `file` on. */
interface Part {
  readonly of: "series" | "steps";
  readonly file: number;
  readonly files: number;
}

function* bySeries({ series, steps }: Grid, part?: Part): Iterable<Row> {
  const { file = 0, files = 1 } = part ?? {};
  const [firstSeries, seriesBy] = part?.of === "series" ? [file, files] : [0, 1];
  const [firstStep, stepBy] = part?.of === "steps" ? [file, files] : [0, 1];
  for (let number = firstSeries; number < series; number += seriesBy)
    for (let step = firstStep; step < steps; step += stepBy)
      yield { series: number, step, value: valueText(thousandthsOf(number, step)) };
}

function* byDate({ series, steps }: Grid): Iterable<Row> {
  for (let step = 0; step < steps; step += 1)
    for (let number = 0; number < series; number += 1)
      yield { series: number, step, value: valueText(thousandthsOf(number, step)) };
}

/** Every tenth reading comes again at the end of the file, with another value. */
function* withCorrections(grid: Grid): Iterable<Row> {
  yield* byDate(grid);
  for (let step = 0; step < grid.steps; step += 10)
    for (let number = 0; number < grid.series; number += 1)
      yield { series: number, step, value: valueText(thousandthsOf(number, step) + 1) };
}

function* inBlocks(rows: Iterable<Row>, line: (row: Row) => string): Iterable<string> {
  let block: string[] = [];
  for (const row of rows) {
    block.push(line(row));
    if (block.length < BLOCK) continue;
    yield block.join("");
    block = [];
  }
  yield block.join("");
}

let textOfStep = { step: -1, zone: "", text: "" };
function dateText(step: number, zone: string): string {
  if (textOfStep.step === step && textOfStep.zone === zone) return textOfStep.text;
  const at = Temporal.Instant.fromEpochMilliseconds(START_MS + step * STEP_MS);
  const text = at.toZonedDateTimeISO(zone).toPlainDateTime().toString({ smallestUnit: "second" });
  textOfStep = { step, zone, text };
  return text;
}

const HEADER = "source_serial_number,mapping_config,date,value\n";
const plain = ({ series, step, value }: Row) => `M-${series},kWh,${dateText(step, "UTC")}Z,${value}\n`;
const local = ({ series, step, value }: Row) => `M-${series},kWh,${dateText(step, ZONE)},${value}\n`;
/** All cells of some rows, and one cell of some others. */
function quoted({ series, step, value }: Row): string {
  const cells = [`M-${series}`, "kWh", `${dateText(step, "UTC")}Z`, value];
  if (step % 7 === 0) return `${cells.map((cell) => `"${cell}"`).join(",")}\n`;
  if ((step + series) % 11 === 0) return `${cells[0]},"kWh",${cells[2]},${cells[3]}\n`;
  return `${cells.join(",")}\n`;
}

function* wide({ series, steps }: Grid): Iterable<string> {
  for (let step = 0; step < steps; step += 1) {
    const values = Array.from({ length: series }, (_, number) => valueText(thousandthsOf(number, step)));
    yield `${dateText(step, "UTC")}Z,${values.join(",")}\n`;
  }
}

const WIDE = {
  date: { column: "date" },
  target: { sourceSerialNumber: "{column}", mappingConfig: "kWh" },
  values: [{ match: "^M-" }],
};
const NAMES = Array.from({ length: SERIES }, (_, series) => `M-${series}`);

const SHAPES: readonly Shape[] = [
  { name: "series after series", header: HEADER, settings: {}, lines: (grid) => inBlocks(bySeries(grid), plain) },
  { name: "all series at each date", header: HEADER, settings: {}, lines: (grid) => inBlocks(byDate(grid), plain) },
  { name: "some cells quoted", header: HEADER, settings: {}, lines: (grid) => inBlocks(byDate(grid), quoted) },
  {
    name: "local times in the order of rows, series after series",
    header: HEADER,
    settings: { timeZone: ZONE, dst: "byOrder" },
    lines: (grid) => inBlocks(bySeries(grid), local),
  },
  {
    name: "local times in the order of rows, all series at each date",
    header: HEADER,
    settings: { timeZone: ZONE, dst: "byOrder" },
    lines: (grid) => inBlocks(byDate(grid), local),
  },
  {
    name: "corrections at the end",
    header: HEADER,
    settings: {},
    lines: (grid) => inBlocks(withCorrections(grid), plain),
    added: (step) => (step % 10 === 0 ? 1 : 0),
  },
  {
    name: "a column a series",
    header: `date,${NAMES.join(",")}\n`,
    settings: WIDE,
    mapper: "delimited",
    lines: wide,
  },
  {
    name: "four files at once",
    header: HEADER,
    settings: {},
    files: FOUR,
    lines: (grid, file) => inBlocks(bySeries(grid, { of: "series", file, files: FOUR }), plain),
  },
  {
    name: "many small files",
    header: HEADER,
    settings: {},
    files: SMALL,
    lines: (grid, file) => inBlocks(bySeries(grid, { of: "steps", file, files: SMALL }), plain),
  },
];

test.for(SHAPES)("each reading of files with $name comes once", async (shape) => {
  const grid: Grid = { series: SERIES, steps: ROWS / SERIES, startMs: START_MS, stepMs: STEP_MS };
  const at = await mkdtemp(join(folder, "shape-"));
  await mkdir(join(at, "drop"));
  for (let file = 0; file < (shape.files ?? 1); file += 1) {
    const handle = await open(join(at, "drop", `file-${file}.csv`), "w");
    await handle.write(shape.header);
    for (const block of shape.lines(grid, file)) await handle.write(block);
    await handle.close();
  }
  service.expectGrid(grid);
  await writeFile(join(at, "gateway.yaml"), JSON.stringify(settingsOf(shape)));
  const ended = await new HeadgateProcess([
    "gateway",
    "-c",
    join(at, "gateway.yaml"),
    "--until-idle",
    "--json",
    "--timeout",
    "30m",
  ]).ended();
  expect(ended.code, ended.stderr).toBe(0);
  let sum = 0n;
  for (let series = 0; series < grid.series; series += 1)
    for (let step = 0; step < grid.steps; step += 1)
      sum += BigInt(thousandthsOf(series, step) + (shape.added?.(step) ?? 0));
  const readings = grid.series * grid.steps;
  expect(service.counted).toEqual({ readings, distinct: readings, foreign: 0, sum });
  const summary = JSON.parse(ended.stdout) as { readonly points: Record<string, number> };
  expect(summary.points).toMatchObject({ mapped: readings, accepted: readings, rejected: 0 });
});

function settingsOf({ mapper = "standard", settings }: Shape) {
  const { url } = service;
  const credentials = { clientId: "shapes", clientSecret: "shapes", username: "shapes", password: "shapes" };
  return {
    services: [{ name: "service", base: `${url}/base`, push: `${url}/push`, token: `${url}/token`, credentials }],
    ledger: { kind: "sqlite", path: "./state/ledger.sqlite" },
    spool: { path: "./state/spool" },
    workers: { count: 2 },
    drops: [localDrop],
    triggers: [
      {
        name: "shapes",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
        guard: "push",
        ...{ mapper, metadata: settings },
      },
    ],
    push: { confirm: { by: "none" } },
    operations: { listen: "127.0.0.1:0" },
  };
}
