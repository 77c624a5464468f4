/** Readings of one target, date and version with different values. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mapText } from "#mapping/authoring/kit/index.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { defineMapper, type MapContext, type Reading, z } from "#mapping/mapper.ts";
import { digestMapper } from "#mapping/mapper-files.ts";
import { parseSettings } from "#mapping/settings.ts";
import { factsOf } from "#mapping/workers/mapper-facts.ts";
import { inputFile, mapWith } from "./kit.ts";

const START = Date.UTC(2026, 2, 1);
const RULES = ["last", "refuse", "first"] as const;

/** Few targets, dates and values, so that readings meet often, with equal values and with others. */
const readings = fc
  .array(
    fc.record(
      {
        target: fc.constantFrom({ variableId: 7 }, { sourceSerialNumber: "M-1", mappingConfig: "kWh" }),
        date: fc.integer({ min: 0, max: 6 }).map((step) => new Date(START + step * 900_000)),
        value: fc.integer({ min: 1, max: 3 }),
        version: fc.constantFrom("a", "b"),
      },
      { requiredKeys: ["target", "date", "value"] },
    ),
    { maxLength: 60 },
  )
  .map((all): Reading[] => all.map((one, nth) => ({ ...one, at: { row: nth + 1 } })));

const keyOf = ({ target, date, version = "" }: Reading) => JSON.stringify([target, date, version]);

/** What counts by the rule, by key. */
function expected(all: readonly Reading[], rule: (typeof RULES)[number]): Map<string, number> {
  const kept = new Map<string, number>();
  for (const [key, same] of Map.groupBy(all, keyOf)) {
    const values = same.map(({ value }) => value);
    const isRefused = rule === "refuse" && new Set(values).size > 1;
    const value = rule === "first" ? values[0] : values.at(-1);
    if (!isRefused && value !== undefined) kept.set(key, value);
  }
  return kept;
}

describe("readings of one target, date and version", () => {
  it.each(RULES)("count by the rule %s, wherever they are spilled, and each is accounted for", async (conflicts) => {
    await fc.assert(
      fc.asyncProperty(readings, fc.integer({ min: 1, max: 30 }), async (all, rowsInMemoryMax) => {
        const map = ({ emit }: MapContext<unknown>) => all.forEach(emit);
        const { result, elements } = await mapWith(map, {
          ...{ rowsInMemoryMax, rows: "lenient", rejectShare: 1 },
          settings: { conflicts },
        });
        const kept = expected(all, conflicts);
        if (result.status === "failed") {
          expect(kept.size).toBe(0);
          return;
        }
        const pushed = elements.flatMap(({ data, ...target }) =>
          data.map(({ date, value, version }) => [
            keyOf({ target, date: new Date(date), value, version } as Reading),
            value,
          ]),
        );
        expect(new Map(pushed as [string, number][])).toEqual(kept);
        expect(pushed.length).toBe(kept.size);
        expect(result.points + result.superseded + result.rejectedCount).toBe(all.length);
        const targets = new Set(elements.map(({ data: _, ...target }) => JSON.stringify(target)));
        expect(result.targets.length).toBe(targets.size);
      }),
      { numRuns: 60 },
    );
  });

  const differ = ({ emit }: MapContext<unknown>) => {
    const target = { variableId: 7 };
    const at = (row: number, value: number, version?: string) =>
      emit({ target, date: new Date(START), value, version, at: { row } });
    at(2, 1.5);
    at(3, 1.5);
    at(4, 9, "final");
    at(5, 2.5);
  };

  it("refuse the file with both rows and both values where they differ", async () => {
    const { result } = await mapWith(differ, { settings: { conflicts: "refuse" } });
    expect(result).toMatchObject({
      status: "failed",
      reason: { place: { row: 3 }, hint: expect.stringContaining("conflicts: last") },
      rejectedCount: 2,
    });
    expect(result.rejected.map(({ message }) => message)).toEqual([
      'the value is 1.5, and 2.5 in row 5, for the same target and date: "variableId=7" at "2026-03-01T00:00:00Z"',
      'the value is 2.5, and 1.5 in row 3, for the same target and date: "variableId=7" at "2026-03-01T00:00:00Z"',
    ]);
  });

  it("are counted apart from equal repetitions, and shown as findings with both rows", async () => {
    const { result } = await mapWith(differ);
    const taken = { row: 5, value: 2.5 };
    const left = { row: 3, value: 1.5 };
    expect(result).toMatchObject({
      ...{ status: "mapped", points: 2, superseded: 2 },
      conflicts: { count: 1, shown: [{ target: "variableId=7", date: "2026-03-01T00:00:00Z", taken, left }] },
    });
    const text = "2.5 of row 5 counts instead of 1.5 of row 3 (variableId=7 at 2026-03-01T00:00:00Z)";
    const message = "rows are replaced by others of their target and date with another value";
    expect(result.findings).toEqual([
      { kind: "repeated", message: "rows repeat the target, date and value of another", count: 1 },
      { kind: "replaced", message, count: 1, first: { row: 3, text }, last: { row: 3, text } },
    ]);
  });

  it("count as refused rows of a lenient run, which fails when they are too many", async () => {
    const options = { rows: "lenient", settings: { conflicts: "refuse" } } as const;
    expect((await mapWith(differ, { ...options, rejectShare: 0.5 })).result).toMatchObject({
      ...{ status: "mapped", points: 1, rejectedCount: 2 },
    });
    expect((await mapWith(differ, { ...options, rejectShare: 0.4 })).result).toMatchObject({
      ...{ status: "failed", reason: { code: "HG-MAP-031" } },
    });
  });
});

describe("the hint of a conflict", () => {
  const hintsOf = async (dates: readonly number[]) => {
    const { result } = await mapWith(
      ({ emit }) => {
        for (const [nth, date] of dates.entries())
          emit({ target: { variableId: 7 }, date: new Date(date), value: nth });
      },
      { settings: { conflicts: "refuse" } },
    );
    return new Set(result.rejected.map(({ hint }) => hint ?? ""));
  };
  const day = Array.from({ length: 96 }, (_, nth) => START + nth * 900_000);

  it("names the missing part of the date where all times of a day come again, and what `last` would lose", async () => {
    const [hint, ...others] = await hintsOf([...day, ...day]);
    expect(others).toEqual([]);
    expect(hint).toContain("a part of the date is not read");
    expect(hint).toContain("`conflicts: last` would keep one day and lose the others");
  });

  it("says of other conflicts which rows each rule leaves out", async () => {
    for (const dates of [
      [...day, day[5] ?? 0],
      [0, 1, 2, 3, 4, 5].flatMap((nth) => [START + nth * 86_400_000, START + nth * 86_400_000]),
    ]) {
      const [hint, ...others] = await hintsOf(dates);
      expect(others).toEqual([]);
      expect(hint).toContain("leaves out the earlier ones");
    }
  });
});

describe("the setting conflicts", () => {
  const map = () => undefined;
  const mapper = defineMapper({ name: "x", summary: "x", map, settings: z.strictObject({ a: z.string() }) });

  it("is a setting of every mapper, with the mapper's own default, and not in the mapper's schema", () => {
    expect(parseSettings(mapper, { a: "1" })).toMatchObject({ value: { a: "1" }, conflicts: "last" });
    expect(parseSettings({ ...mapper, conflicts: "refuse" }, { a: "1" })).toMatchObject({
      conflicts: "refuse",
    });
    expect(parseSettings(mapper, { a: "1", conflicts: "first" })).toMatchObject({
      value: { a: "1" },
      conflicts: "first",
    });
    expect(parseSettings(mapper, { a: "1", conflicts: "never" })).toEqual({
      fault: "conflicts: it is none of last, refuse, first",
    });
    expect(parseSettings(mapper, { a: "1", conflict: "last" })).toMatchObject({
      fault: expect.stringContaining('did you mean "conflicts"?'),
    });
    expect(factsOf({ ...mapper, conflicts: "refuse" }).settingsSchema).toMatchObject({
      properties: { a: {}, conflicts: { enum: ["last", "refuse", "first"], default: "refuse" } },
    });
  });

  it("cannot be a mapper's own setting", async () => {
    const source = `import { defineMapper, z } from "headgate/mapper";
      export default defineMapper({ name: "own", summary: "", settings: z.object({ conflicts: z.string() }), map() {} });`;
    const path = await inputFile(source, "own.ts");
    await expect(loadMapper(path, await digestMapper(path))).rejects.toThrow("which every mapper has already");
  });

  it("is reported by the test kit of mappers", async () => {
    const twice = defineMapper({
      ...{ name: "twice", summary: "twice" },
      map({ emit }) {
        for (const value of [1, 2]) emit({ target: { variableId: 7 }, date: new Date(START), value });
      },
    });
    expect((await mapText(twice, "")).conflicts).toEqual([
      "2 counts instead of 1 (variableId=7 at 2026-03-01T00:00:00Z)",
    ]);
  });
});
