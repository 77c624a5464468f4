/** Rows of a day that are read from their bytes by a plan give what the mapper's own code gives for them. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { inputFile } from "./kit.ts";
import { countedRows, expectSame, fileOf, mapperAt, number, oneOf, outcome, shape } from "./plan-kit.ts";

const LONDON = "Europe/London";

/** Days far from a change of the clock, beside one, and of 23 and 25 hours; and texts that are no day. */
const day = fc.oneof(
  oneOf(40, fc.constantFrom("2026-06-01", "2026-06-02", "2026-06-03", "2026-01-31", "2026-02-28")),
  oneOf(8, fc.constantFrom("2026-03-28", "2026-03-29", "2026-03-30", "2026-10-24", "2026-10-25", "2026-10-26")),
  oneOf(1, fc.constantFrom("2026-02-30", "1899-01-01", "", "x", "2026-06-01T00:00:00Z", "2026-06-01T12:00")),
);

function dayIn(text: string, format: string): string {
  const [, year = "", month = "", dayOfMonth = ""] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  if (year === "" || format === "yyyy-MM-dd") return text;
  if (format === "d/M/yyyy") return `${Number(dayOfMonth)}/${Number(month)}/${year}`;
  return format === "dd/MM/yy"
    ? `${dayOfMonth}/${month}/${year.slice(2)}`
    : format.replace("yyyy", year).replace("MM", month).replace("dd", dayOfMonth);
}

/** How many of the columns hold values, the further ones being empty; and a text in the place of a value or status. */
const cells = fc.record({
  filled: fc.oneof(
    oneOf(30, fc.constant("48")),
    oneOf(6, fc.constantFrom("46", "50")),
    oneOf(1, fc.constantFrom("0", "3", "45", "47", "49")),
  ),
  start: fc.nat({ max: 500 }),
  odd: fc.option(fc.tuple(fc.nat({ max: 49 }), fc.oneof(number, fc.constant(""))), { freq: 6 }),
  estimated: fc.option(fc.tuple(fc.nat({ max: 49 }), fc.constantFrom("E", "E", "", "d", "?")), { freq: 3 }),
});

const row = fc.record({
  meter: fc.constantFrom("M-1", "M-2", "Mé"),
  day,
  status: fc.oneof(oneOf(30, fc.constantFrom("A", "E")), oneOf(1, fc.constantFrom("d", "?"))),
  cells,
});

type Row = typeof row extends fc.Arbitrary<infer Given> ? Given : never;

/** The cells of the half hours, each with its status where there is a column for it. */
function halfHours({ filled, start, odd, estimated }: Row["cells"], columns: number, isFlagged: boolean): string[] {
  return Array.from({ length: columns }, (_, at) => {
    const usual = at < Number(filled) ? String((start + at) / 4) : "";
    const value = odd?.[0] === at ? odd[1] : usual;
    const flag = estimated?.[0] === at ? estimated[1] : value === "" ? "" : "A";
    return isFlagged ? [value, flag] : [value];
  }).flat();
}

const chosen = fc.record({
  isFlagged: fc.boolean(),
  columns: fc.constantFrom(46, 47, 48, 50, 50, 50),
  names: fc.constantFrom("HH", "clock", "none"),
  format: fc.constantFrom("yyyy-MM-dd", "dd/MM/yyyy", "dd/MM/yy", "yyyyMMdd"),
  timeZone: fc.constantFrom(LONDON, LONDON, "UTC", "+01:00", "Nowhere"),
  changeDays: fc.constantFrom(undefined, "order", "clock"),
  skippedHour: fc.constantFrom("empty", "zero"),
  stamp: fc.constantFrom("start", "end"),
  ragged: fc.constantFrom("reject", "allow"),
  missing: fc.constantFrom(undefined, [""], ["", "7"]),
  dayFlag: fc.boolean(),
  tags: fc.constantFrom(undefined, { day: "{Status}" }),
  conflicts: fc.constantFrom("last", "first", "refuse"),
});

it("half-hourly files, by plan and row by row", { timeout: 240_000 }, async () => {
  const { mapper } = await mapperAt("half-hourly");
  const flags = { values: { A: "keep", E: "quality:estimated", "": "keep", d: "drop" }, otherwise: "reject" };
  const lines = fc.oneof(
    { weight: 60, arbitrary: row },
    { weight: 1, arbitrary: fc.constantFrom("", ",,,", "M-1,2026-06-01,A,1,2") },
  );
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(lines, { minLength: 1, maxLength: 60, size: "max" }),
      chosen,
      async ({ lineEnd, blocks, dst, from, order, ...given }, rows, { columns, names, isFlagged, format, ...rest }) => {
        const { dayFlag, tags, ...settings } = rest;
        const isNamed = names !== "none";
        const texts = rows.map((one) => {
          if (typeof one === "string") return one;
          const values = halfHours(one.cells, columns, isFlagged);
          return [one.meter, dayIn(one.day, format), one.status, ...values].join(",");
        });
        const name = (at: number) =>
          names === "clock" && at < 48
            ? `${String(at >> 1).padStart(2, "0")}:${at % 2 ? "30" : "00"}`
            : `HH${String(at + 1).padStart(2, "0")}`;
        const periods = Array.from({ length: columns }, (_, at) =>
          isFlagged ? [name(at), `${name(at)} Flag`] : [name(at)],
        );
        const header = isNamed ? `MPAN,Date,Status,${periods.flat().join(",")}` : "M-1,2026-06-01,A";
        const path = await inputFile(fileOf(header, texts, lineEnd, blocks));
        await expectSame(mapper, {
          path,
          settings: {
            ...{ ...settings, flags, dst: dst === "byOrder" ? "reject" : dst },
            ...(isNamed
              ? { ...(dayFlag ? { dayFlag: "Status" } : {}), ...(tags === undefined ? {} : { tags }) }
              : { header: false, meter: 1, day: 2, first: 4, flagged: isFlagged, ...(dayFlag ? { dayFlag: 3 } : {}) }),
          },
          ...given,
        });
      },
    ),
    { numRuns: 80 },
  );
});

it("delimited files with a row a day, by plan and row by row", { timeout: 240_000 }, async () => {
  const { mapper } = await mapperAt("delimited");
  const formats = ["yyyy-MM-dd", "dd/MM/yyyy", "d/M/yyyy", "dd/MM/yy"];
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(row, { minLength: 1, maxLength: 60, size: "max" }),
      fc.record({
        format: fc.constantFrom("iso", ...formats, [formats[1], formats[3]], [formats[1], "MM/dd/yyyy"]),
        timeZone: fc.constantFrom("Europe/Brussels", "Europe/Brussels", "{Meter}", "UTC"),
        changeDays: fc.constantFrom("reject", "order", "clock"),
        shift: fc.constantFrom(undefined, "30m", "-1h", "1d"),
        scale: fc.constantFrom(undefined, undefined, 0.001),
        unit: fc.constantFrom(undefined, "kWh", "{Status}"),
        isFlagged: fc.boolean(),
      }),
      async ({ lineEnd, blocks, dst, from, order, ...given }, rows, { format, isFlagged, changeDays, ...settings }) => {
        const shown = (text: string) => dayIn(text, format === "iso" ? "yyyy-MM-dd" : ([format].flat()[0] ?? ""));
        const texts = rows.map(({ meter, day: text, status, cells: given }) =>
          [meter, shown(text), status, ...halfHours(given, 50, isFlagged)].join(";"),
        );
        const names = Array.from({ length: 50 }, (_, at) => (isFlagged ? `V${at};S${at}` : `V${at}`));
        const path = await inputFile(fileOf(`Meter;Day;Status;${names.join(";")}`, texts, lineEnd, blocks));
        const flags = { values: { A: "keep", E: "quality:estimated", "": "keep" }, otherwise: "drop" };
        await expectSame(mapper, {
          path,
          settings: {
            ...{ delimiter: ";", ...settings, missing: [""], dst: dst === "byOrder" ? "reject" : dst },
            ...{ date: { column: "Day", format }, target: { meterNumber: "{Meter}", mappingConfig: "kWh" } },
            day: { from: "V0", interval: "30m", changeDays, ...(isFlagged ? { flags } : {}) },
          },
          ...given,
        });
      },
    ),
    { numRuns: 80 },
  );
});

it("a half-hourly file is read by its plan, and not by the mapper's own code", async () => {
  const { mapper, taken } = countedRows((await mapperAt("half-hourly")).mapper);
  const names = Array.from({ length: 50 }, (_, at) => `HH${at + 1},HH${at + 1} Flag`);
  const days = Array.from({ length: 365 }, (_, at) => new Date(Date.UTC(2026, 0, 1 + at)).toISOString().slice(0, 10));
  const lines = ["M-1", "M-2"].flatMap((meter) =>
    days.map((text, nth) => {
      const filled = { "2026-03-29": "46", "2026-10-25": "50" }[text] ?? "48";
      const estimated: Row["cells"]["estimated"] = nth % 5 === 0 ? [nth % 48, "E"] : null;
      return [
        meter,
        dayIn(text, "dd/MM/yyyy"),
        ...halfHours({ filled, start: nth, odd: null, estimated }, 50, true),
      ].join(",");
    }),
  );
  const path = await inputFile(`MPAN,Date,${names.join(",")}\n${lines.join("\n")}\n`);
  const { result } = await outcome(mapper, { path, settings: {}, rows: "strict" });
  expect(result).toMatchObject({ status: "mapped", points: 2 * 365 * 48 });
  // The header, and of each meter: the days beside both changes, the first after each and before them, and one with a
  // status of its own.
  expect(taken()).toBeLessThan(25);
});
