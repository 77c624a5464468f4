/** Files and comparisons for the tests of rows that are read from their bytes by a plan. */
import { basename } from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import type { Mapper } from "#mapping/mapper.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import type { RangeHelper } from "#mapping/ranges/ranges.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import type { BatchSink } from "#mapping/segment/writer.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";

export const BLOCK_BYTES = 16 * 1024;

export interface Given {
  readonly path: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  readonly fileName?: string | undefined;
  readonly rowsInMemoryMax?: number | undefined;
  readonly rejectShare?: number | undefined;
  readonly helper?: RangeHelper | undefined;
}

export async function mapperAt(name: string): Promise<{ modulePath: string; mapper: Mapper }> {
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
export async function outcome(mapper: Mapper, { path, fileName = basename(path), ...given }: Given) {
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

export async function expectSame(mapper: Mapper, given: Given): Promise<void> {
  expect(await outcome(mapper, given)).toEqual(await outcome(withoutPlan(mapper), given));
}

/** The mapper, and how many rows its own code took. */
export function countedRows(mapper: Mapper): { readonly mapper: Mapper; readonly taken: () => number } {
  let taken = 0;
  const counted: Mapper = {
    ...mapper,
    map: (context) =>
      mapper.map({
        ...context,
        eachRow(rows, take, plan) {
          const counting: typeof take = (row) => {
            taken += 1;
            take(row);
          };
          return context.eachRow(rows, counting, plan);
        },
      }),
  };
  return { mapper: counted, taken: () => taken };
}

export const oneOf = (weight: number, arbitrary: fc.Arbitrary<string>) => ({ weight, arbitrary });
const QUARTER_MS = 900_000;
export const BRUSSELS = "Europe/Brussels";
export const starts = fc.constantFrom(
  ...["2026-03-28T22:00", "2026-10-24T22:00", "2026-06-01T00:00"].map((text) => Date.parse(`${text}Z`)),
);

/** Wall times around both changes of the clock in Brussels, and far from them. */
const wall = fc
  .tuple(starts, fc.nat({ max: 40 }))
  .map(([from, quarters]) => new Date(from + quarters * QUARTER_MS).toISOString().slice(0, 19));
const walls = (to: (text: string) => string) => wall.map(to);
export const date = fc.oneof(
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

export const number = fc.oneof(
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
export function ordered(from: number, nth: number, { rows, step }: { rows: number; step: number }): string {
  const at = Temporal.Instant.fromEpochMilliseconds(from + Math.floor(nth / rows) * step);
  return at.toZonedDateTimeISO(BRUSSELS).toPlainDateTime().toString({ smallestUnit: "second" });
}

/** Repeats the lines until the file has several blocks, whose borders are anywhere. */
export function fileOf(header: string, rows: readonly string[], lineEnd: string, blocks: number): string {
  const text = rows.join(lineEnd) + lineEnd;
  const times = blocks === 0 ? 1 : Math.ceil((blocks * BLOCK_BYTES) / Math.max(1, text.length));
  return `${header}${lineEnd}${text.repeat(Math.min(times, 2000))}`;
}

export const shape = fc.record({
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

/** A wall time or an instant in another format; texts that are no dates stay as they are. */
export function inFormat(text: string, format: string | readonly string[]): string {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d)(:\d\d)?(?:Z|\+01:00)?$/.exec(text);
  if (match === null) return text;
  const [, year, month, day, time, second = ":00"] = match;
  if (format === "dd/MM/yyyy HH:mm") return `${day}/${month}/${year} ${time}`;
  if (format === "d.M.yyyy HH:mm") return `${Number(day)}.${Number(month)}.${year} ${time}`;
  return format === "iso" || typeof format !== "string" ? text : `${year}-${month}-${day}T${time}${second}`;
}
