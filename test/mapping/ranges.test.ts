/** A file in two ranges gives what it gives in one, in everything, wherever it is cut. */
import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { defineMapper, type Mapper } from "#mapping/mapper.ts";
import { mapRange } from "#mapping/ranges/map-range.ts";
import { type FileRange, type RangeHelper, rangeOf } from "#mapping/ranges/ranges.ts";
import { Cut } from "#mapping/readers/cut.ts";
import { createMapperFile } from "#mapping/readers/mapper-file.ts";
import { RowTracker } from "#mapping/readers/row-place.ts";
import { collect, inputFile } from "./kit.ts";
import { BRUSSELS, date, fileOf, type Given, mapperAt, number, oneOf, ordered, outcome, shape } from "./plan-kit.ts";

/** Maps the later range in this thread. `joined` counts the ranges that were handed over. */
function helperOf(mapper: Mapper, { path, settings, rowsInMemoryMax }: Given, range: FileRange, from = path) {
  const seen = { asked: 0, handed: 0 };
  const helper: RangeHelper = {
    rangeOf: () => range,
    async ask(asked) {
      seen.asked += 1;
      const names = { inputPath: from, fileName: basename(path), filePath: basename(path) };
      const signal = new AbortController().signal;
      const mapped = await mapRange({ ...names, mapper, settings, rowsInMemoryMax, signal, range: asked });
      if (mapped !== null) seen.handed += 1;
      return mapped;
    },
    stop: () => undefined,
  };
  return { helper, seen };
}

function lineEnds(bytes: Buffer): number[] {
  return [...bytes.keys()].filter((at) => bytes[at] === 10).map((at) => at + 1);
}

/** Compares the file in one range and in two, at all the given cuts. Returns how many ranges were handed over. */
async function handedOver(mapper: Mapper, given: Given, cuts: readonly FileRange[]): Promise<number> {
  const whole = await outcome(mapper, given);
  let handed = 0;
  for (const range of cuts) {
    const { helper, seen } = helperOf(mapper, given, range);
    expect(await outcome(mapper, { ...given, helper }), JSON.stringify(range)).toEqual(whole);
    handed += seen.handed;
  }
  return handed;
}

it("standard data files, at every cut", { timeout: 240_000 }, async () => {
  const { mapper } = await mapperAt("standard");
  const target = fc.constantFrom("M-1;kWh", "M-2;kWh", "M-1;kW", "Mé;kWh", "M-12;kWh", "M-1;2kWh");
  const beside = fc.oneof(
    oneOf(200, fc.constantFrom(";", "v1;", "v2;", ";a:b", "v1;a:b|c:d")),
    oneOf(1, fc.constant(";bad")),
  );
  const instant = '2026-06-01T00:00:00Z;"M-1";kWh;7;;';
  // No quote stays open: the reader would find it before the rows of its block are taken, and blocks end at a cut.
  const odd = ["", "M-1;kWh;1", instant, '2026-06-01T00:00:00Z;"M\n2026";kWh;7;;'];
  const row = fc.oneof(
    { weight: 200, arbitrary: fc.tuple(date, target, number, beside) },
    { weight: 100, arbitrary: fc.tuple(fc.constant("2026-06-01T00:00:00Z"), target, fc.constant("1.5"), beside) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
  let handed = 0;
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(row, { minLength: 1, maxLength: 40 }),
      fc.constantFrom(undefined, BRUSSELS, BRUSSELS, "UTC"),
      fc.constantFrom("last", "first", "refuse"),
      fc.nat(),
      async ({ lineEnd, dst, from, order, blocks: _, ...given }, rows, timeZone, conflicts, head) => {
        const lines = rows.map((cells, nth) => {
          if (typeof cells === "string") return cells;
          const [shown, ...others] = cells;
          return [order === null ? shown : ordered(from, nth, order), ...others].join(";");
        });
        const text = fileOf("date;source_serial_number;mapping_config;value;version;tags", lines, lineEnd, 0);
        const path = await inputFile(text);
        const settings = { dst, delimiter: ";", conflicts, ...(timeZone === undefined ? {} : { timeZone }) };
        const ends = lineEnds(Buffer.from(text));
        const cuts = ends.map((cut, nth) => ({ headEnd: ends[head % (nth + 1)] ?? 0, from: cut }));
        handed += await handedOver(mapper, { path, settings, ...given }, cuts);
      },
    ),
    { numRuns: 150 },
  );
  expect(handed).toBeGreaterThan(20);
});

it("local times by the order of their series, at every cut and after every head", { timeout: 240_000 }, async () => {
  const { mapper } = await mapperAt("standard");
  const stepsOf = fc.constantFrom(15, 15, 30, 60);
  let handed = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({ series: fc.integer({ min: 1, max: 3 }), step: stepsOf, isBackwards: fc.boolean() }),
      fc.array(fc.nat({ max: 13 }), { maxLength: 2 }),
      fc.constantFrom(undefined, 7),
      fc.nat({ max: 4 }),
      async ({ series, step, isBackwards }, left, rowsInMemoryMax, nth) => {
        const steps = [...Array(14).keys()].filter((nth) => !left.includes(nth));
        const from = Date.parse("2026-10-24T23:15:00Z");
        const walls = steps.map((nth) => ordered(from, nth, { rows: 1, step: step * 60_000 }));
        const lines = (isBackwards ? walls.toReversed() : walls).flatMap((wall, nth) =>
          Array.from({ length: series }, (_, of) => `${wall},M-${of},kWh,${nth * series + of}`),
        );
        const text = `${HEADER}${lines.join("\n")}\n`;
        const path = await inputFile(text);
        const ends = lineEnds(Buffer.from(text));
        const cuts = ends.flatMap((cut, nth) => ends.slice(0, nth + 1).map((head) => ({ headEnd: head, from: cut })));
        const settings = { dst: "byOrder", timeZone: BRUSSELS };
        const given: Given = { path, settings, rows: "lenient", rowsInMemoryMax };
        handed += await handedOver(
          mapper,
          given,
          cuts.filter((_, at) => at % 5 === nth),
        );
      },
    ),
    { numRuns: 15 },
  );
  expect(handed).toBeGreaterThan(20);
});

it("leaves an hour to the thread that knows the row before it", async () => {
  const { mapper } = await mapperAt("standard");
  const hour = ["02:00", "02:15", "02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00"];
  const times = ["01:00", "05:00", "04:00", ...hour];
  const text = HEADER + times.map((time, nth) => `2026-10-25T${time}:00,M-1,kWh,${nth}\n`).join("");
  const path = await inputFile(text);
  const ends = lineEnds(Buffer.from(text));
  const given: Given = { path, settings: { dst: "byOrder", timeZone: BRUSSELS }, rows: "lenient" };
  const whole = await outcome(mapper, given);
  expect(whole.result).toMatchObject({ status: "mapped", rejectedCount: 8 });
  expect(await handedOver(mapper, given, [{ headEnd: ends[1] ?? 0, from: ends[3] ?? 0 }])).toBe(0);
});

it("joins no range while rows wait for the row after their hour", async () => {
  const { mapper } = await mapperAt("standard");
  const times = ["02:00", "02:00", "03:00", "03:30"];
  const text = HEADER + times.map((time, nth) => `2026-10-25T${time}:00,M-1,kWh,${nth}\n`).join("");
  const path = await inputFile(text);
  const ends = lineEnds(Buffer.from(text));
  const given: Given = { path, settings: { dst: "byOrder", timeZone: BRUSSELS }, rows: "strict" };
  const whole = await outcome(mapper, given);
  expect(whole.result).toMatchObject({ status: "mapped", points: 4 });
  await handedOver(mapper, given, [{ headEnd: ends[0] ?? 0, from: ends[2] ?? 0 }]);
});

it("cuts no row within its quotes", async () => {
  const text = 'first,second\n1,"x\ny"\n2,z\n';
  const inputPath = await inputFile(text);
  const reached: [number, number][] = [];
  for (const at of lineEnds(Buffer.from(text))) {
    const decide = async (line: number) => {
      reached.push([at, line]);
      return null;
    };
    const facts = { inputPath, fileName: "a.csv", filePath: "a.csv", size: text.length, cut: new Cut(at, at, decide) };
    const file = createMapperFile(facts, new RowTracker(), () => undefined, new AbortController().signal);
    const rows = (await collect(file.csv())).length;
    expect(rows, `cut at ${at}`).toBe({ 13: 1, 18: 3, 21: 2, 25: 3 }[at]);
  }
  expect(reached).toEqual([
    [13, 2],
    [21, 4],
    [25, 5],
  ]);
});

const HEADER = "date,source_serial_number,mapping_config,value\n";
const rowsOf = (count: number, of: (nth: number) => string) =>
  HEADER + Array.from({ length: count }, (_, nth) => `${of(nth)}\n`).join("");
const dateAt = (nth: number) => new Date(Date.UTC(2026, 0, 1) + nth * 900_000).toISOString();

it("takes what the other thread made, and shows its rows by their lines in the file", async () => {
  const { mapper } = await mapperAt("standard");
  const text = rowsOf(40, (nth) => `${dateAt(nth)},M-${nth % 3},kWh,${nth}`);
  const path = await inputFile(text);
  const other = await inputFile(text.replaceAll(",39\n", ",77\n"));
  const ends = lineEnds(Buffer.from(text));
  const given: Given = { path, settings: {}, rows: "strict" };
  const { helper } = helperOf(mapper, given, { headEnd: ends[4] ?? 0, from: ends[20] ?? 0 }, other);
  const whole = await outcome(mapper, given);
  const parts = await outcome(mapper, { ...given, helper });
  expect(parts.bodies.join("")).toBe(whole.bodies.join("").replace('"value":39}', '"value":77}'));
  expect(parts.rows).toEqual(whole.rows);
});

it("maps a range itself whose targets come in another order, or that the other thread left", async () => {
  const { mapper } = await mapperAt("standard");
  const text = rowsOf(40, (nth) => `${dateAt(nth)},M-${nth < 20 ? nth : 59 - nth},kWh,${nth}`);
  const path = await inputFile(text);
  const ends = lineEnds(Buffer.from(text));
  const given: Given = { path, settings: {}, rows: "strict" };
  const range = { headEnd: ends[0] ?? 0, from: ends[20] ?? 0 };
  const { helper, seen } = helperOf(mapper, given, range);
  const whole = await outcome(mapper, given);
  expect(await outcome(mapper, { ...given, helper })).toEqual(whole);
  expect(seen.handed).toBe(1);
  const none: RangeHelper = { ...helper, ask: () => Promise.resolve(null) };
  expect(await outcome(mapper, { ...given, helper: none })).toEqual(whole);
});

it("maps a range itself when a target has another unit there", async () => {
  const path = await inputFile(rowsOf(40, (nth) => `${dateAt(nth)},M-${nth % 3},kWh,${nth}`));
  const ends = lineEnds(await readFile(path));
  const given: Given = { path, settings: {}, rows: "strict" };
  const { helper, seen } = helperOf(unitMapper, given, { headEnd: ends[0] ?? 0, from: ends[20] ?? 0 });
  const whole = await outcome(unitMapper, given);
  expect(await outcome(unitMapper, { ...given, helper })).toEqual(whole);
  const wrongUnit: RangeHelper = {
    ...helper,
    ask: async (asked) => {
      const mapped = await helper.ask(asked);
      return mapped && { ...mapped, groups: mapped.groups.map((group) => ({ ...group, unit: "m3" })) };
    },
  };
  expect(await outcome(unitMapper, { ...given, helper: wrongUnit })).toEqual(whole);
  expect(seen.handed).toBe(2);
});

/** A mapper whose rows are independent of each other. */
const unitMapper = defineMapper({
  name: "units",
  summary: "of a test",
  async map({ file, emit, eachRow, number }) {
    const plan = {
      ...{ width: 4, date: { column: 0 }, values: [3], by: [1, 2], independent: true },
    };
    let isHeader = true;
    await eachRow(
      file.csv(),
      ([date = "", name = "", config = "", value = ""]) => {
        if (isHeader) isHeader = false;
        else emit({ target: { sourceName: name, mappingConfig: config }, date, value: number(value, {}), unit: "kWh" });
      },
      () => plan,
    );
  },
});

it("maps a range itself when the file is also read apart from its rows, which ends with the head there", async () => {
  const path = await inputFile(rowsOf(40, (nth) => `${dateAt(nth)},M-${nth % 3},kWh,${nth}`));
  const ends = lineEnds(await readFile(path));
  const given: Given = { path, settings: {}, rows: "strict" };
  const { helper, seen } = helperOf(countingMapper, given, { headEnd: ends[4] ?? 0, from: ends[20] ?? 0 });
  const whole = await outcome(countingMapper, given);
  expect(await outcome(countingMapper, { ...given, helper })).toEqual(whole);
  expect(seen).toEqual({ asked: 1, handed: 0 });
});

const countingMapper = defineMapper({
  name: "counts",
  summary: "of a test",
  async map(context) {
    let lines = 0;
    for await (const some of context.file.lines()) lines += some.length;
    const emit: typeof context.emit = (reading) =>
      context.emit({ ...reading, target: { sourceName: `of ${lines}`, mappingConfig: "kWh" } });
    await unitMapper.map({ ...context, emit });
  },
});

it("asks for no other thread when a mapper does not say that its rows are independent", async () => {
  const { mapper } = await mapperAt("delimited");
  const text = rowsOf(40, (nth) => `${dateAt(nth)},M-1,kWh,${nth}`);
  const path = await inputFile(text);
  const ends = lineEnds(Buffer.from(text));
  const settings = {
    ...{ date: "date", value: "value", target: { sourceName: "M", mappingConfig: "kWh" }, timeZone: "UTC" },
  };
  const given: Given = { path, settings, rows: "strict" };
  const { helper, seen } = helperOf(mapper, given, { headEnd: ends[0] ?? 0, from: ends[20] ?? 0 });
  expect(await outcome(mapper, { ...given, helper })).toEqual(await outcome(mapper, given));
  expect(seen.asked).toBe(0);
});

it("cuts large files behind a line end, and none without one", async () => {
  const text = rowsOf(4000, (nth) => `${dateAt(nth)},M-1,kWh,${nth}`);
  const path = await inputFile(text);
  const range = rangeOf(path, text.length, 1000);
  const ends = lineEnds(Buffer.from(text));
  expect(ends).toContain(range?.headEnd);
  expect(ends).toContain(range?.from);
  expect(range?.headEnd).toBeLessThan(range?.from ?? 0);
  expect(rangeOf(path, text.length, text.length + 1)).toBeNull();
  expect(rangeOf(`${path}.none`, text.length, 1000)).toBeNull();
  await writeFile(path, text.replaceAll("\n", "\r"));
  expect(rangeOf(path, text.length, 1000)).toBeNull();
});
