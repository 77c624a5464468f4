/** Rows that are read from their bytes by a plan give what the mapper's own code gives for them, in everything. */
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { caseSample } from "../../src/authoring/cases.ts";
import { loadMapper } from "../../src/mapping/load-mapper.ts";
import { mapFile } from "../../src/mapping/map-file.ts";
import { FileError, type Mapper } from "../../src/mapping/mapper.ts";
import { digestMapper, locateMapper } from "../../src/mapping/mapper-files.ts";
import { createMemorySink } from "../../src/segment/memory-sinks.ts";
import type { BatchSink } from "../../src/segment/writer.ts";
import { BUNDLED_FOLDER } from "../../src/workers/catalogue.ts";
import { inputFile } from "./kit.ts";

const BLOCK_BYTES = 16 * 1024;

interface Given {
  readonly path: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly fileName?: string | undefined;
  readonly rowsInMemoryMax?: number | undefined;
  readonly rejectShare?: number | undefined;
}

async function mapperAt(name: string): Promise<{ modulePath: string; mapper: Mapper }> {
  const modulePath = (await locateMapper([BUNDLED_FOLDER], name)) ?? expect.fail(`no mapper ${name}`);
  return { modulePath, mapper: await loadMapper(modulePath, await digestMapper(modulePath)) };
}

/** The mapper without its plans: each row is made by the reader, and taken by the mapper's code. */
function withoutPlan(mapper: Mapper): Mapper {
  return {
    ...mapper,
    map: (context) => mapper.map({ ...context, eachRow: (rows, take) => context.eachRow(passedOn(rows), take) }),
  };
}

async function* passedOn<Row>(rows: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
  yield* rows;
}

/** Everything that a run shows of the file: batches, rows of their readings, result, log. */
async function outcome(mapper: Mapper, { path, fileName = basename(path), ...given }: Given) {
  const memory = createMemorySink();
  const rows: number[][] = [];
  const lines: string[] = [];
  const sink: BatchSink = {
    ...memory,
    append(body, sheetName) {
      rows.push([...body.rows]);
      return memory.append(body, sheetName);
    },
  };
  const log = { info: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) };
  const result = await mapFile({
    ...{ inputPath: path, fileName, filePath: fileName, mapper, sink, ...given },
    log: log as never,
    limits: { pointsMax: 40, bytesMax: 4000 },
    signal: new AbortController().signal,
  });
  return { result, rows, lines, bodies: memory.bodies.map((body) => body.toString("utf8")) };
}

async function expectSame(mapper: Mapper, given: Given): Promise<void> {
  expect(await outcome(mapper, given)).toEqual(await outcome(withoutPlan(mapper), given));
}

const oneOf = (weight: number, arbitrary: fc.Arbitrary<string>) => ({ weight, arbitrary });
const QUARTER_MS = 900_000;
const BRUSSELS = "Europe/Brussels";
const starts = fc.constantFrom(
  ...["2026-03-28T22:00", "2026-10-24T22:00", "2026-06-01T00:00"].map((text) => Date.parse(`${text}Z`)),
);

/** Wall times around both changes of the clock in Brussels, and far from them. */
const wall = fc
  .tuple(starts, fc.nat({ max: 40 }))
  .map(([from, quarters]) => new Date(from + quarters * QUARTER_MS).toISOString().slice(0, 19));
const walls = (to: (text: string) => string) => wall.map(to);
const date = fc.oneof(
  oneOf(
    60,
    walls((text) => `${text}Z`),
  ),
  oneOf(
    20,
    walls((text) => `${text.slice(0, 16)}+01:00`),
  ),
  oneOf(
    10,
    walls((text) => `${text.replace("T", " ")}.25Z`),
  ),
  oneOf(40, wall),
  oneOf(
    1,
    walls((text) => `${text}.1234567Z`),
  ),
  oneOf(
    3,
    fc.constantFrom("", " ", "2026-02-30T00:00:00Z", "1880-01-01T00:00:00Z", "x", "2026-06-01", "2026-06-01T24:00:00Z"),
  ),
);

const number = fc.oneof(
  oneOf(60, fc.integer({ min: -99_999, max: 99_999 }).map(String)),
  oneOf(
    60,
    fc.tuple(fc.nat({ max: 99_999 }), fc.nat({ max: 999 })).map(([whole, part]) => `${whole}.${part}`),
  ),
  oneOf(
    20,
    fc.constantFrom("0.1", "00.50", "123456789012345", "1234567890.12345", "0.12345678901234567", "98765432109876543"),
  ),
  oneOf(1, fc.constantFrom("+1", "1e3", ".5", "5.", " 7", "1,5", "1 000", "-", "-.", "\u22121", "n/a", "", '"8"')),
);

/** Wall times in Brussels that follow each other, the same for some rows. */
function ordered(from: number, nth: number, { rows, step }: { rows: number; step: number }): string {
  const at = Temporal.Instant.fromEpochMilliseconds(from + Math.floor(nth / rows) * step);
  return at.toZonedDateTimeISO(BRUSSELS).toPlainDateTime().toString({ smallestUnit: "second" });
}

/** Repeats the lines until the file has several blocks, whose borders are anywhere. */
function fileOf(header: string, rows: readonly string[], lineEnd: string, blocks: number): string {
  const text = rows.join(lineEnd) + lineEnd;
  const times = blocks === 0 ? 1 : Math.ceil((blocks * BLOCK_BYTES) / Math.max(1, text.length));
  return `${header}${lineEnd}${text.repeat(Math.min(times, 2000))}`;
}

const shape = fc.record({
  lineEnd: fc.constantFrom("\n", "\r\n"),
  blocks: fc.constantFrom(0, 0, 2),
  rows: fc.constantFrom("strict" as const, "lenient" as const, "lenient" as const),
  rejectShare: fc.constantFrom(undefined, 0.02),
  rowsInMemoryMax: fc.constantFrom(undefined, 7, 100),
  dst: fc.constantFrom("reject", "earlier", "later", "byOrder"),
  from: starts,
  order: fc.constantFrom(
    null,
    null,
    ...[1, 3].flatMap((rows) => [1, 2, 47, 150].map((quarters) => ({ rows, step: quarters * QUARTER_MS }))),
  ),
});

it("standard data files, by plan and row by row", { timeout: 120_000 }, async () => {
  const { mapper } = await mapperAt("standard");
  const target = fc.constantFrom("M-1;kWh", "M-2;kWh", "M-1;kW", "Mé;kWh", "M-12;kWh", "M-1;2kWh");
  const beside = fc.oneof(
    oneOf(100, fc.constantFrom(";", "v1;", "v2;", ";a:b", "v1;a:b|c:d")),
    oneOf(1, fc.constant(";bad")),
  );
  const odd = ["", "M-1;kWh;1", '2026-06-01T00:00:00Z;"M-1";kWh;7;;', ";;;;;", "2026-06-01T00:00:00Z;;;1;;;;"];
  const row = fc.oneof(
    { weight: 100, arbitrary: fc.tuple(date, target, number, beside) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(row, { minLength: 1, maxLength: 120, size: "max" }),
      fc.constantFrom(undefined, BRUSSELS, BRUSSELS, BRUSSELS, "UTC", "+01:00"),
      fc.constantFrom(".", ".", ","),
      async ({ lineEnd, blocks, dst, from, order, ...given }, rows, timeZone, decimal) => {
        const joined = ([date, target, value, beside]: readonly string[], other = date) =>
          [other, target, value?.replace(".", decimal), beside].join(";");
        const lines = rows.map((cells, nth) =>
          typeof cells === "string" ? cells : joined(cells, order === null ? undefined : ordered(from, nth, order)),
        );
        const header = "date;source_serial_number;mapping_config;value;version;tags";
        const path = await inputFile(fileOf(header, lines, lineEnd, blocks));
        const settings = { dst, decimal, delimiter: ";", ...(timeZone === undefined ? {} : { timeZone }) };
        await expectSame(mapper, { path, settings, ...given });
      },
    ),
    { numRuns: 300 },
  );
});

it("a row that is read from its bytes ends the repeated hour before it", async () => {
  const { mapper } = await mapperAt("standard");
  const quarters = ["02:00", "02:15", "02:30", "02:45"].map((time) => `2026-10-25T${time}:00`);
  // The last row corrects one of the repeated hour, so it has to come after the rows that waited for their order.
  const winter = ["2026-11-05T00:00:00", "2026-11-06T00:00:00"];
  const dates = [...winter, ...quarters, ...quarters, "2026-10-28T00:00:00", "2026-10-25T00:15:00Z"];
  const lines = dates.map((date, value) => `${date},M-1,kWh,${value}\n`);
  const path = await inputFile(`date,source_serial_number,mapping_config,value\n${lines.join("")}`);
  const given: Given = { path, settings: { timeZone: BRUSSELS, dst: "byOrder" }, rows: "strict" };
  await expectSame(mapper, given);
  const { bodies } = await outcome(mapper, given);
  expect(bodies.join("")).toContain('{"date":"2026-10-25T00:15:00Z","value":11}');
});

it("a fault of the whole file is at the row that was read last", async () => {
  const { mapper } = await mapperAt("standard");
  const ended: Mapper = {
    ...mapper,
    map: async (context) => {
      await mapper.map(context);
      throw new FileError("the file is not complete", { column: "value" });
    },
  };
  const line = "2026-06-01T00:00:00Z,M-1,kWh,1\n";
  const path = await inputFile(`date,source_serial_number,mapping_config,value\n${line.repeat(2000)}`);
  const { result } = await outcome(ended, { path, settings: {}, rows: "strict" });
  expect(result).toMatchObject({ status: "failed", reason: { place: { row: 2001, column: "value" } } });
});

it("the samples of all mappers, by plan and row by row", { timeout: 120_000 }, async () => {
  for (const name of await readdir(BUNDLED_FOLDER)) {
    if (name.startsWith("_")) continue;
    const { modulePath, mapper } = await mapperAt(name);
    for (const example of await readdir(join(dirname(modulePath), "cases"))) {
      const { hasLookups, ...sample } = await caseSample(modulePath, example);
      if (!hasLookups) await expectSame(mapper, sample);
    }
  }
});

it("a file of many targets is read by its plan, and not by the mapper's own code", async () => {
  const { mapper } = await mapperAt("standard");
  const lines = Array.from({ length: 5000 }, (_, at) => {
    const date = new Date(Date.UTC(2026, 0, 1) + Math.floor(at / 50) * 900_000).toISOString().slice(0, 19);
    return `${date}Z,M-${at % 50},kWh,${at / 4}`;
  });
  const path = await inputFile(`date,source_serial_number,mapping_config,value\n${lines.join("\n")}\n`);
  expect((await readFile(path)).length).toBeGreaterThan(3 * BLOCK_BYTES);
  let taken = 0;
  const counted: Mapper = {
    ...mapper,
    map: (context) =>
      mapper.map({
        ...context,
        eachRow: (rows, take, plan) =>
          context.eachRow(
            rows,
            (row) => {
              taken += 1;
              take(row);
            },
            plan,
          ),
      }),
  };
  const { result } = await outcome(counted, { path, settings: {}, rows: "strict" });
  expect(result).toMatchObject({ status: "mapped", points: 5000 });
  // The header, and the first row of each target.
  expect(taken).toBe(51);
});
