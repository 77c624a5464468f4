/** Rows that are read from their bytes by a plan give what the mapper's own code gives for them, in everything. */
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { caseSample } from "#mapping/authoring/cases.ts";
import { FileError, type Mapper } from "#mapping/mapper.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { inputFile } from "./kit.ts";
import {
  BLOCK_BYTES,
  BRUSSELS,
  countedRows,
  date,
  expectSame,
  fileOf,
  type Given,
  inFormat,
  mapperAt,
  number,
  oneOf,
  ordered,
  outcome,
  shape,
} from "./plan-kit.ts";

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

it("delimited files, long and wide, by plan and row by row", { timeout: 120_000 }, async () => {
  const { mapper } = await mapperAt("delimited");
  const meter = { meterNumber: "{Meter}" };
  const layouts = [
    { value: "kWh", target: { ...meter, mappingConfig: "{Kind}" } },
    { value: "kWh", target: { ...meter, mappingConfig: "kWh" }, tags: { kind: "{Kind}" }, version: "{Status}" },
    { values: [{ match: "^(?:kWh|m3)$" }], target: { ...meter, mappingConfig: "{column}" }, unit: "{Kind}" },
    {
      values: [
        { column: "m3", target: { mappingConfig: "gas" } },
        { column: "kWh", target: { mappingConfig: "{Kind}" } },
      ],
    },
    {
      values: [
        { column: 6, scale: 0.1, target: { mappingConfig: "6" } },
        { column: 5, target: { mappingConfig: "5" } },
      ],
    },
  ];
  const status = { column: "Status", values: { ok: "keep", e: "q:est", x: "reject", d: "drop" }, otherwise: "keep" };
  const seconds = "yyyy-MM-dd'T'HH:mm:ss";
  const several = ["iso", "yyyyMMdd HH:mm", "yyyy-dd-MM'T'HH:mm:ss"].map((other) => [other, seconds]);
  const formats = ["iso", "dd/MM/yyyy HH:mm", seconds, "d.M.yyyy HH:mm", ...several];
  const beside = fc.tuple(
    fc.constantFrom("A", "B", "Cé"),
    fc.constantFrom("x", "y", "gas"),
    fc.constantFrom("ok", "e"),
  );
  const oddBeside = fc.constantFrom(
    ["A", "", "ok"],
    ["B", "x", "x"],
    ["B", "y", "d"],
    [" A", "x", "?"],
    ["", "x", "ok"],
  );
  const value = fc.oneof({ weight: 20, arbitrary: number }, { weight: 2, arbitrary: fc.constantFrom("", "-999") });
  const row = fc.oneof(
    {
      weight: 60,
      arbitrary: fc.tuple(
        date,
        fc.oneof({ weight: 30, arbitrary: beside }, { weight: 1, arbitrary: oddBeside }),
        value,
        value,
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom("", ";;;;;", "A;x", "1;2;3;4;5;6;7", '"2026-06-01T00:00:00Z";A;x;ok;1;2') },
  );
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(row, { minLength: 1, maxLength: 120, size: "max" }),
      fc.record({
        layout: fc.constantFrom(...layouts),
        format: fc.constantFrom(...formats),
        timeZone: fc.constantFrom(BRUSSELS, BRUSSELS, "UTC+1", "{Kind}"),
        decimal: fc.constantFrom(".", ","),
        statuses: fc.constantFrom(undefined, [status]),
        missing: fc.constantFrom(undefined, [""], ["", "-999"]),
        conflicts: fc.constantFrom("last", "first", "refuse"),
        headerRows: fc.constantFrom(1, 1, 0),
      }),
      async ({ lineEnd, blocks, dst, from, order, ...given }, rows, { layout, statuses, ...chosen }) => {
        const dateIn = (text: string) => inFormat(text, chosen.format);
        const lines = rows.map((cells, nth) => {
          if (typeof cells === "string") return cells;
          const [date, texts, ...values] = cells;
          const shown = order === null ? date : ordered(from, nth, order);
          return [dateIn(shown), ...texts, ...values.map((text) => text.replace(".", chosen.decimal))].join(";");
        });
        const byNumber = chosen.headerRows === 0;
        const header = byNumber ? "2026-01-01T00:00:00Z;A;x;ok;1;2" : "Time;Meter;Kind;Status;kWh;m3";
        const settings = {
          ...{ delimiter: ";", dst, timeZone: chosen.timeZone, decimal: chosen.decimal, conflicts: chosen.conflicts },
          ...{ date: { column: 1, format: chosen.format }, target: meter, headerRows: chosen.headerRows },
          ...(byNumber ? { value: 5, target: { meterNumber: "{2}", mappingConfig: "{3}" } } : layout),
          ...(byNumber || statuses === undefined ? {} : { status: statuses }),
          ...(chosen.missing === undefined ? {} : { missing: chosen.missing }),
          ...(byNumber && chosen.timeZone === "{Kind}" ? { timeZone: "{3}" } : {}),
        };
        const path = await inputFile(fileOf(header, lines, lineEnd, blocks));
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

function quarterHours(rows: number, write: (date: string, at: number) => string): string {
  const lines = Array.from({ length: rows }, (_, at) => {
    const date = new Date(Date.UTC(2026, 0, 1) + Math.floor(at / 50) * 900_000).toISOString().slice(0, 19);
    return `${write(date, at)}\n`;
  });
  const text = lines.join("");
  expect(text.length).toBeGreaterThan(3 * BLOCK_BYTES);
  return text;
}

it("a standard file of many targets is read by its plan, and not by the mapper's own code", async () => {
  const { mapper, taken } = countedRows((await mapperAt("standard")).mapper);
  const text = quarterHours(5000, (date, at) => `${date}Z,M-${at % 50},kWh,${at / 4}`);
  const path = await inputFile(`date,source_serial_number,mapping_config,value\n${text}`);
  const { result } = await outcome(mapper, { path, settings: {}, rows: "strict" });
  expect(result).toMatchObject({ status: "mapped", points: 5000 });
  // The header, and the first row of each target.
  expect(taken()).toBe(51);
});

it("a wide file in local time is read by its plan, and not by the mapper's own code", async () => {
  const { mapper, taken } = countedRows((await mapperAt("delimited")).mapper);
  const text = quarterHours(
    5000,
    (date, at) => `${date.replace("T", " ")};M-${at % 50};${at}${at % 3 ? "" : ",5"};${at}`,
  );
  const path = await inputFile(`Time;Meter;kWh;m3\n${text}`);
  const settings = {
    ...{ delimiter: ";", decimal: ",", timeZone: BRUSSELS, dst: "byOrder" },
    date: { column: "Time", format: "yyyy-MM-dd HH:mm:ss" },
    ...{ target: { meterNumber: "{Meter}", mappingConfig: "{column}" }, values: [{ match: "^(?:kWh|m3)$" }] },
  };
  const { result } = await outcome(mapper, { path, settings, rows: "strict" });
  expect(result).toMatchObject({ status: "mapped", points: 10_000 });
  // The header, the first row, which names the zone, and the first row of each target after it.
  expect(taken()).toBe(52);
});

it("a file without a header refuses rows of another width among those that are read by its plan", async () => {
  const delimited = (await mapperAt("delimited")).mapper;
  const { mapper, taken } = countedRows(delimited);
  const cells = { 3000: "", 4000: ",8,9", 4999: "" };
  const text = quarterHours(
    5000,
    (date, at) => `${date}Z,M-${at % 50},${at}${cells[at as keyof typeof cells] ?? ",ok"}`,
  );
  const path = await inputFile(text.trimEnd());
  const settings = {
    headerRows: 0,
    missing: [""],
    date: { column: 1 },
    target: { meterNumber: "{2}", mappingConfig: "kWh" },
    value: 3,
  };
  const { result } = await outcome(mapper, { path, settings, rows: "lenient" });
  expect(result).toMatchObject({ status: "mapped", points: 4997, rejectedCount: 3 });
  const places = result.rejected.map(({ place, message }) => [place?.row, message]);
  expect(places).toEqual([
    [3001, "the row has 3 cells where the first row has 4"],
    [4001, "the row has 5 cells where the first row has 4"],
    [5000, "the row has 3 cells where the first row has 4"],
  ]);
  // The first row, the first row of each target, and those of another width.
  expect(taken()).toBe(1 + 50 + 3);
  await expectSame(delimited, { path, settings, rows: "strict" });
});
