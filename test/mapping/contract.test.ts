/** The types of the contract, as an author's editor has them: `tsc` checks each line that must not compile. */
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  type DstPolicy,
  defineMapper,
  FileError,
  type Lookup,
  type MapContext,
  type Reading,
  RowError,
  type Target,
  type TextRow,
  z,
} from "#mapping/mapper.ts";
import { mapWith } from "./kit.ts";

const SOURCES = {
  sourceId: 7,
  sourceSerialNumber: "M-1",
  sourceEan: "541448920701234567",
  sourceName: "Main meter",
  meterNumber: "96120001",
} as const;
const SELECTORS = { mappingConfig: "1-0:1.8.0", variableTypeId: 6 } as const;

describe("a target", () => {
  const targets: readonly Target[] = [
    { variableId: 1 },
    { sourceId: 7, mappingConfig: "a" },
    { sourceId: 7, variableTypeId: 6 },
    { sourceSerialNumber: "M-1", mappingConfig: "a" },
    { sourceSerialNumber: "M-1", variableTypeId: 6 },
    { sourceEan: "5", mappingConfig: "a" },
    { sourceEan: "5", variableTypeId: 6 },
    { sourceName: "x", mappingConfig: "a" },
    { sourceName: "x", variableTypeId: 6 },
    { meterNumber: "9", mappingConfig: "a" },
    { meterNumber: "9", variableTypeId: 6 },
  ];

  it("is one of eleven combinations of identifier and selector, and each is written unchanged", async () => {
    const { elements } = await mapWith(({ emit }) => {
      for (const target of targets) emit({ target, date: "2026-03-01T00:00:00Z", value: 1 });
    });
    const fields = elements.map(({ data: _data, ...target }) => target);
    expect(fields).toHaveLength(1 + Object.keys(SOURCES).length * Object.keys(SELECTORS).length);
    expect(new Set(fields.map((one) => JSON.stringify(one)))).toEqual(
      new Set(targets.map((one) => JSON.stringify(one))),
    );
  });

  it("does not compile with none, two or half of them, nor with another type", () => {
    // @ts-expect-error a source needs a selector
    const half: Target = { sourceId: 7 };
    // @ts-expect-error and takes only one
    const twoSelectors: Target = { sourceId: 7, mappingConfig: "a", variableTypeId: 1 };
    // @ts-expect-error a target has one identifier
    const twoSources: Target = { sourceId: 7, sourceEan: "5", mappingConfig: "a" };
    // @ts-expect-error a variable stands alone
    const both: Target = { variableId: 1, mappingConfig: "a" };
    // @ts-expect-error a selector is no target
    const selector: Target = { mappingConfig: "a" };
    // @ts-expect-error ids are numbers
    const text: Target = { variableId: "1" };
    // @ts-expect-error serial numbers are text
    const number: Target = { sourceSerialNumber: 1, mappingConfig: "a" };
    // @ts-expect-error and names are spelt as the specification spells them
    const misspelt: Target = { sourceSerialNo: "1", mappingConfig: "a" };
    expect([half, twoSelectors, twoSources, both, selector, text, number, misspelt]).toHaveLength(8);
  });
});

describe("a reading", () => {
  it("has a target, a date and a finite number, and may have version, tags, unit and place", () => {
    expectTypeOf<Reading["date"]>().toEqualTypeOf<Temporal.Instant | Date | string>();
    expectTypeOf<Reading["value"]>().toEqualTypeOf<number>();
    expectTypeOf<NonNullable<Reading["tags"]>>().toEqualTypeOf<Readonly<Record<string, string>>>();
    const row: TextRow = {};
    const target: Target = { variableId: 1 };
    const full: Reading = {
      target,
      date: new Date(0),
      value: 1,
      version: "2",
      tags: { quality: "E" },
      batchTags: { file: "7" },
      unit: "kWh",
      at: row,
    };
    // @ts-expect-error text is read by `number`, with its marks
    const text: Reading = { target, date: "2026-03-01T00:00:00Z", value: "1,5" };
    // @ts-expect-error milliseconds are not a date: whose zone would they be in?
    const ms: Reading = { target, date: 0, value: 1 };
    // @ts-expect-error tags are texts
    const tags: Reading = { target, date: new Date(0), value: 1, tags: { quality: 1 } };
    expect([full, text, ms, tags]).toHaveLength(4);
  });
});

describe("defineMapper", () => {
  it("passes `map` the settings as its schema parses them", () => {
    const mapper = defineMapper({
      name: "typed",
      summary: "s",
      settings: z.strictObject({ timeZone: z.string(), factor: z.coerce.number().default(1) }),
      map({ settings }) {
        expectTypeOf(settings).toEqualTypeOf<{ timeZone: string; factor: number }>();
        // @ts-expect-error there is no such setting
        settings.zone;
      },
    });
    expect(mapper).toMatchObject({ name: "typed", isHeadgateMapper: true });
    // @ts-expect-error a mapper has a name, a summary and `map`
    defineMapper({ name: "half" });
  });

  it("returns rows by names only when names are requested", () => {
    defineMapper({
      name: "rows",
      summary: "s",
      async map({ file, eachRow }) {
        await eachRow(file.csv({ columns: true }), (row) => expectTypeOf(row).toEqualTypeOf<TextRow>());
        await eachRow(file.csv(), (row) => expectTypeOf(row).toEqualTypeOf<readonly string[]>());
        for await (const rows of file.csv({ columns: true })) expectTypeOf(rows).toEqualTypeOf<readonly TextRow[]>();
        // @ts-expect-error a delimiter is text
        file.csv({ delimiter: 1 });
      },
    });
  });
});

describe("the tools", () => {
  type Tools = MapContext<unknown>;

  it("have the shapes that authors rely on", () => {
    expectTypeOf<Tools["time"]["local"]>().toEqualTypeOf<
      (text: string, format: string, zone: string, policy?: DstPolicy) => Temporal.Instant
    >();
    expectTypeOf<Tools["time"]["iso"]>().returns.toEqualTypeOf<Temporal.Instant>();
    expectTypeOf<Tools["time"]["dayStart"]>().returns.toEqualTypeOf<Temporal.Instant>();
    expectTypeOf<Tools["time"]["dayLength"]>().returns.toEqualTypeOf<number>();
    expectTypeOf<Tools["unit"]>().toEqualTypeOf<(value: number, from: string, to: string) => number>();
    expectTypeOf<Tools["lookup"]>().toEqualTypeOf<(name: string) => Promise<Lookup>>();
    expectTypeOf<Lookup["get"]>().returns.toEqualTypeOf<TextRow | undefined>();
    expectTypeOf<Lookup["require"]>().returns.toEqualTypeOf<TextRow>();
    expectTypeOf<Tools["emit"]>().returns.toEqualTypeOf<void>();
  });

  it("assume no zone, and accept only the known marks and policies", async () => {
    const { result } = await mapWith(({ time, number }) => {
      // @ts-expect-error a local time has no default zone
      const zoneless = () => time.local("2026-03-01", "yyyy-MM-dd");
      // @ts-expect-error policies are a closed set
      const policy = () => time.iso("2026-03-01T00:00", "UTC", "sooner");
      // @ts-expect-error a decimal mark is a point or a comma
      const mark = () => number("1", { decimal: ";" });
      for (const refused of [zoneless, policy, mark]) expect(refused).toThrow();
    });
    expect(result.status).toBe("mapped");
  });

  it("refuse rows and files by errors that carry column, text and hint", () => {
    expect(new RowError("bad", { column: "value", text: "x", hint: "h" })).toMatchObject({
      column: "value",
      text: "x",
      hint: "h",
    });
    expect(new FileError("bad", { sheet: "s", row: 2 })).toMatchObject({ sheet: "s", row: 2 });
    // @ts-expect-error an error says what is wrong
    expect(() => new RowError()).not.toThrow();
  });
});
