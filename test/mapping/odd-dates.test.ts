/** Dates that do not fit the others of their target. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { loadMapper } from "#mapping/load-mapper.ts";
import { defineMapper } from "#mapping/mapper.ts";
import { digestMapper } from "#mapping/mapper-files.ts";
import { parseSettings } from "#mapping/settings.ts";
import { factsOf } from "#mapping/workers/mapper-facts.ts";
import { inputFile, mapWith } from "./kit.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 2, 1);

type Settings = Readonly<Record<string, unknown>>;

/** Maps a file with a row of each date, of one target or of those that `targetOf` names. */
async function mapDates(
  dates: readonly number[],
  options: { settings?: Settings; rows?: "strict" | "lenient"; rowsInMemoryMax?: number; targets?: number } = {},
) {
  const { settings = {}, targets = 1, ...more } = options;
  const { result, elements } = await mapWith(
    ({ emit }) => {
      for (const [nth, date] of dates.entries())
        emit({ target: { variableId: 1 + (nth % targets) }, date: new Date(date), value: nth, at: { row: nth + 2 } });
    },
    { ...{ rejectShare: 1, settings: { conflicts: "last", ...settings } }, ...more },
  );
  const values = elements.flatMap(({ data }) => data.map(({ value }) => value)).sort((a, b) => a - b);
  return { result, values, rows: result.rejected.map(({ place }) => place?.row) };
}

const steps = (count: number, ms: number, from = START) => Array.from({ length: count }, (_, nth) => from + nth * ms);

describe("a date before the floor", () => {
  const reset = steps(6, HOUR)
    .with(2, Date.UTC(1980, 0, 6))
    .with(3, Date.UTC(1980, 0, 6, 1));

  it("refuses its row where the target has later ones, and the file when strict", async () => {
    const { result } = await mapDates(reset);
    expect(result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-005", place: { row: 4 } } });
    expect(result.status === "failed" && result.reason.message).toContain("is before 1990-01-01");
    const { rows, values } = await mapDates(reset, { rows: "lenient" });
    expect(rows).toEqual([4, 5]);
    expect(values).toEqual([0, 1, 4, 5]);
  });

  it("refuses every such row of a long file, from memory and from the disk", async () => {
    const long = steps(900, HOUR).map((date, nth) => (nth % 3 === 1 ? Date.UTC(1980, 0, 6) + nth : date));
    for (const rowsInMemoryMax of [10_000, 64]) {
      const { values, result } = await mapDates(long, { rows: "lenient", rowsInMemoryMax });
      expect(values).toEqual([...long.keys()].filter((nth) => nth % 3 !== 1));
      expect(result.rejectedByReason?.map(({ count }) => count)).toEqual([100, 1]);
    }
  });

  it("is history where all are, and right where the setting says so", async () => {
    expect((await mapDates(steps(20, HOUR, Date.UTC(1985, 0, 1)))).values).toHaveLength(20);
    const twoTargets = steps(20, HOUR).map((date, nth) => (nth % 2 === 0 ? date : date - 45 * 365 * DAY));
    expect((await mapDates(twoTargets, { targets: 2 })).values).toHaveLength(20);
    expect((await mapDates(reset, { settings: { dates: { floor: "1970-01-01" } } })).values).toHaveLength(6);
  });
});

describe("a date far from those of the rows before and after it", () => {
  const far = Date.UTC(2025, 5, 3);

  it.each([
    ["forwards", steps(20, HOUR)],
    ["backwards", steps(20, HOUR).toReversed()],
    ["by day", steps(20, DAY)],
    ["in blocks that the memory cannot hold", steps(2000, HOUR)],
  ])("refuses its row, %s", async (_, dates) => {
    const at = dates.length - 7;
    const options = { rowsInMemoryMax: 128 };
    const { result } = await mapDates(dates.with(at, far), options);
    expect(result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-005", place: { row: at + 2 } } });
    const { rows, values } = await mapDates(dates.with(at, far), { ...options, rows: "lenient" });
    expect(rows).toEqual([at + 2]);
    expect(values).toHaveLength(dates.length - 1);
    expect((await mapDates(dates.with(at, far), { settings: { dates: { outliers: "keep" } } })).values).toHaveLength(
      dates.length,
    );
  });

  it.each([
    ["the first row", steps(20, HOUR).with(0, far)],
    ["the last row", steps(20, HOUR).with(19, far)],
    ["a series of nine", steps(9, HOUR).with(4, far)],
    ["a block of rows", [...steps(10, HOUR), ...steps(10, HOUR, far)]],
    ["a series by quarters of a year", steps(40, 92 * DAY)],
    ["a series by years in which one is missing", steps(12, 365 * DAY).toSpliced(5, 1)],
    ["columns of years, row by row", steps(60, DAY).flatMap((date) => [date - 730 * DAY, date - 365 * DAY, date])],
    ["months with a gap of years", [...steps(6, 30 * DAY), ...steps(6, 30 * DAY, Date.UTC(2031, 0, 1))]],
  ])("may be right in %s", async (_, dates) => {
    expect((await mapDates(dates)).values).toHaveLength(dates.length);
  });
});

describe("findings of dates", () => {
  const found = async (dates: readonly number[], settings: Settings = {}) =>
    (await mapDates(dates, { settings })).result.findings;
  const months = (day: number) => Array.from({ length: 12 }, (_, month) => Date.UTC(2026, month, day));

  it("tell of targets before the floor, of first and last rows, and of what the setting keeps", async () => {
    expect(await found(steps(20, HOUR, Date.UTC(1985, 0, 1)))).toMatchObject([
      { kind: "early", count: 20, attention: true },
    ]);
    const far = Date.UTC(2025, 5, 3);
    const ends = steps(20, HOUR)
      .with(0, far)
      .with(19, far + HOUR);
    expect(await found(ends)).toMatchObject([{ kind: "outlier", count: 2, first: { row: 2 }, attention: true }]);
    const kept = await found(steps(20, HOUR).with(9, far), { dates: { outliers: "keep" } });
    expect(kept).toMatchObject([{ kind: "outlier", count: 1, first: { row: 11 } }]);
  });

  it("tell of days that may be months, and of a last row at the start of its day", async () => {
    expect(await found([...months(1), ...months(2)])).toMatchObject([
      { kind: "dayAndMonth", count: 1, first: { row: 14 }, attention: true },
    ]);
    expect(await found([...months(1), ...months(1).map((date) => date + 365 * DAY)])).toEqual([]);
    const day = steps(24, HOUR, START + HOUR).with(23, START);
    expect(await found(day)).toMatchObject([{ kind: "midnight", count: 1, first: { row: 25 }, attention: true }]);
    expect(await found(steps(24, HOUR).toReversed())).toEqual([]);
  });
});

describe("the setting dates", () => {
  const mapper = defineMapper({ name: "x", summary: "x", map: () => undefined, settings: z.strictObject({}) });

  it("is a setting of every mapper, and not in the mapper's schema", async () => {
    expect(parseSettings(mapper, {})).toMatchObject({ dates: { floor: "1990-01-01", outliers: "refuse" } });
    expect(parseSettings(mapper, { dates: { floor: "soon", outliers: "x" } })).toMatchObject({
      fault: expect.stringMatching(/dates\.floor: .*dates\.outliers: /),
    });
    expect(factsOf(mapper).settingsSchema).toMatchObject({ properties: { dates: { properties: { floor: {} } } } });
    const source = `import { defineMapper, z } from "headgate/mapper";
      export default defineMapper({ name: "own", summary: "", settings: z.object({ dates: z.string() }), map() {} });`;
    const path = await inputFile(source, "own.ts");
    await expect(loadMapper(path, await digestMapper(path))).rejects.toThrow('"dates", which every mapper has already');
  });
});

describe("the end of a day with the date of that day", () => {
  const ends = (minutes: number, days: number, zoneMs = 0) =>
    Array.from({ length: days }, (_, day) =>
      Array.from({ length: 1440 / minutes }, (__, nth) => {
        const end = (nth + 1) * minutes * 60_000;
        return START + zoneMs + day * DAY + (end === DAY ? 0 : end);
      }),
    ).flat();

  it.each([60, 30, 15])(
    "is refused between the last step of the day and the first of the next, every %i minutes",
    async (minutes) => {
      const dates = ends(minutes, 3, -HOUR);
      const { result } = await mapDates(dates);
      expect(result).toMatchObject({ status: "failed", reason: { place: { row: 1440 / minutes + 1 } } });
      expect(result.status === "failed" && result.reason.hint).toContain("midnight: endOfDay");
      const { rows } = await mapDates(dates, { rows: "lenient" });
      expect(rows).toEqual([1440 / minutes + 1, 2 * (1440 / minutes) + 1]);
      expect((await mapDates(dates, { settings: { dates: { outliers: "keep" } } })).values).toHaveLength(dates.length);
    },
  );

  it.each([
    ["a file with the newest first", steps(100, HOUR).toReversed()],
    ["days with the newest first", [2, 1, 0].flatMap((day) => steps(24, HOUR, START + day * DAY))],
    ["a row a day, newest first", steps(30, DAY).toReversed()],
    ["a day that is sent twice", [...steps(24, HOUR), ...steps(24, HOUR)]],
  ])("is not what %s has", async (_, dates) => {
    expect((await mapDates(dates)).result.status).toBe("mapped");
  });
});
