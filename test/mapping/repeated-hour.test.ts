/** Rows in the hour that the end of daylight saving repeats, distinguished by their order. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mapText } from "#mapping/authoring/kit/index.ts";
import { defineMapper, type MapContext, type Reading } from "#mapping/mapper.ts";
import { passesOf } from "#mapping/series-order.ts";
import delimited from "../../mappers/delimited/mapper.ts";
import { mapWith } from "./kit.ts";

const FORMAT = "yyyy-MM-dd HH:mm:ss";
const BRUSSELS = "Europe/Brussels";

const wallText = (instant: Temporal.Instant, zone: string) =>
  instant.toZonedDateTimeISO(zone).toPlainDateTime().toString({ smallestUnit: "second" }).replace("T", " ");

/** Zones that go back by an hour and by half an hour, north and south of the equator. */
const ZONES = [BRUSSELS, "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Australia/Adelaide"];

interface Row {
  readonly text: string;
  readonly instant: Temporal.Instant;
  readonly kind: "data" | "skipped" | "missing" | "dropped" | "cut" | "hole";
}

const scene = fc
  .record({
    zone: fc.constantFrom(...ZONES),
    minutes: fc.constantFrom(1, 5, 10, 15, 20, 30),
    phase: fc.integer({ min: 0, max: 29 }),
    alternates: fc.boolean(),
    forwards: fc.boolean(),
    /** Where the file begins and ends, in steps. */
    from: fc.integer({ min: 0, max: 20 }),
    until: fc.integer({ min: 0, max: 20 }),
    kinds: fc.infiniteStream(
      fc.oneof(
        { weight: 14, arbitrary: fc.constant("data" as const) },
        {
          weight: 1,
          arbitrary: fc.constantFrom<Row["kind"]>("skipped", "missing", "dropped", "cut", "hole"),
        },
      ),
    ),
    isWhole: fc.boolean(),
  })
  .map(({ zone, minutes, phase, alternates, forwards, from, until, kinds, isWhole }) => {
    let change = Temporal.Instant.from("2026-01-01T00:00:00Z").toZonedDateTimeISO(zone).getTimeZoneTransition("next");
    while (change !== null && change.offsetNanoseconds > change.subtract({ seconds: 1 }).offsetNanoseconds)
      change = change.getTimeZoneTransition("next");
    const at = change ?? Temporal.Instant.from("2026-10-25T01:00:00Z").toZonedDateTimeISO(zone);
    const start = at.toInstant().subtract({ minutes: 150 + (phase % minutes) });
    const all = Array.from({ length: Math.floor(300 / minutes) }, (_, nth) => start.add({ minutes: nth * minutes }));
    const ordered = alternates
      ? all.toSorted((a, b) => wallText(a, zone).localeCompare(wallText(b, zone)) || Temporal.Instant.compare(a, b))
      : all;
    const cut = isWhole ? ordered : ordered.slice(from, ordered.length - until);
    const rows = cut.map((instant): Row => {
      const kind = isWhole ? "data" : (kinds.next().value ?? "data");
      return { text: wallText(instant, zone), instant, kind };
    });
    const back = at.subtract({ seconds: 1 }).offsetNanoseconds - at.offsetNanoseconds;
    // Both passes of each time exist where the steps divide what the clocks go back by.
    const isResolved = isWhole && (!alternates || (back / 60e9) % minutes === 0);
    return { zone, isResolved, rows: forwards ? rows : rows.toReversed() };
  });

const LINES: Readonly<Record<Row["kind"], (row: Row) => string>> = {
  data: ({ text, instant }) => `${text};ok;${instant.epochMilliseconds}`,
  skipped: ({ text }) => `${text};test;1`,
  missing: ({ text }) => `${text};ok;`,
  dropped: ({ text }) => `${text};bad;1`,
  cut: ({ text }) => text,
  hole: () => "",
};

const settings = {
  ...{ delimiter: ";", dst: "byOrder", missing: [""], skipRows: [";test;"], value: "true" },
  date: { column: "t", format: FORMAT },
  target: { variableId: 1 },
  status: [{ column: "state", values: { ok: "keep", bad: "drop" } }],
};

/** The date of each emitted reading, with its value: the instant that it truly has. */
async function readFile(rows: readonly Row[], zone: string, more: object = {}) {
  const lines = rows.map((row) => LINES[row.kind](row));
  const result = await mapText(delimited, `t;state;true\n${lines.join("\n")}\n`, {
    ...{ rows: "lenient", settings: { ...settings, timeZone: zone, ...more } },
  });
  return {
    result,
    read: result.elements.flatMap(({ data }) => data.map(({ date, value }) => [Date.parse(date), value] as const)),
  };
}

describe("a series with dst byOrder", () => {
  it("never gets a wrong instant, whichever rows are missing, skipped, dropped or cut off", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async ({ zone, isResolved, rows }) => {
        const { result, read } = await readFile(rows, zone);
        for (const [date, instant] of read) expect(date).toBe(instant);
        const data = rows.filter(({ kind }) => kind === "data").length;
        const cut = rows.filter(({ kind }) => kind === "cut").length;
        if (result.status === "mapped") expect(read.length + result.rejectedCount).toBe(data + cut);
        if (isResolved) expect(read.length).toBe(rows.length);
      }),
      { numRuns: 150 },
    );
  });

  it("refuses rows that fall by less than the hour, with no row around them that shows the direction", async () => {
    const row = (iso: string): Row => {
      const instant = Temporal.Instant.from(iso);
      return { kind: "data", instant, text: wallText(instant, BRUSSELS) };
    };
    // Two rows of the first pass in a file that runs backwards, or one of each pass in one that runs forwards.
    const { read, result } = await readFile([row("2026-10-25T00:50:00Z"), row("2026-10-25T00:30:00Z")], BRUSSELS);
    expect(read).toEqual([]);
    expect(result.rejectedCount).toBe(2);
  });

  it("keeps the shift of its dates, in minutes and in days of the calendar", async () => {
    const rows = ["00:45", "00:45"].map((_, nth): Row => {
      const instant = Temporal.Instant.from(nth === 0 ? "2026-10-25T00:30:00Z" : "2026-10-25T01:30:00Z");
      return { kind: "data", instant, text: wallText(instant, BRUSSELS) };
    });
    const noon = Temporal.Instant.from("2026-10-25T11:00:00Z");
    const all = [...rows, { kind: "data", instant: noon, text: wallText(noon, BRUSSELS) } as const];
    const minutes = await readFile(all, BRUSSELS, { shift: "-15m" });
    expect(minutes.read.map(([date, instant]) => date - instant)).toEqual([-900_000, -900_000, -900_000]);
    // Both passes of a time have the same time a day later, so one of them would be lost.
    const days = await readFile(all, "Romance Standard Time", { shift: "1d" });
    expect(days.read).toEqual([[Date.UTC(2026, 9, 26, 11), noon.epochMilliseconds]]);
    expect(days.result.rejected.map(({ message }) => message)).toEqual([
      expect.stringContaining("for the same target and date"),
      expect.stringContaining("for the same target and date"),
    ]);
  });

  const hour = async (clocks: readonly string[], policy: object = {}) => {
    const lines = clocks.map((clock, nth) => `2026-10-25 ${clock}:00;ok;${nth}`);
    const result = await mapText(delimited, `t;state;true\n${lines.join("\n")}\n`, {
      ...{ rows: "lenient", settings: { ...settings, timeZone: BRUSSELS, ...policy } },
    });
    const read = result.elements.flatMap(({ data }) => data);
    return { result, dates: read.map(({ date, value }) => `${value} ${date.slice(11, 16)}`) };
  };

  it("is resolved where both passes of each time are adjacent", async () => {
    const { dates } = await hour(["01:45", "02:00", "02:00", "02:15", "02:15", "03:00"]);
    expect(dates).toEqual(["0 23:45", "1 00:00", "3 00:15", "2 01:00", "4 01:15", "5 02:00"]);
  });

  it(
    "is refused for the whole hour where a time of such pairs is missing, with the rest of the file " + "taken",
    async () => {
      const { result, dates } = await hour(["01:45", "02:00", "02:00", "02:15", "02:30", "02:30", "03:00"]);
      expect(dates).toEqual(["0 23:45", "6 02:00"]);
      expect(result.rejected.map(({ place }) => place?.row)).toEqual([3, 4, 5, 6, 7]);
      expect(result.rejected[0]).toMatchObject({
        message: expect.stringContaining("the order of the rows does not decide between them"),
        place: { column: "column 1", text: "2026-10-25 02:00:00" },
      });
    },
  );

  it("is refused with one row of each time, unless the policy names the pass", async () => {
    const once = ["01:45", "02:00", "02:15", "02:30", "02:45", "03:00"];
    const { result, dates } = await hour(once);
    expect(dates).toEqual(["0 23:45", "5 02:00"]);
    expect(result.rejected[0]?.message).toContain("there is one row of each time only");
    expect((await hour(once, { dst: "earlier" })).dates).toContain("1 00:00");
    expect((await hour(once, { dst: "later" })).dates).toContain("1 01:00");
  });

  it.each([
    [15, true],
    [15, false],
    [30, true],
    [30, false],
    [60, true],
    [60, false],
  ])("finds the pass of ends that are named by their starts, every %i minutes, forwards: %s", async (minutes, way) => {
    const from = Temporal.Instant.from("2026-10-24T22:00:00Z");
    const all = Array.from({ length: 360 / minutes }, (_, nth): Row => {
      const start = from
        .add({ minutes: nth * minutes })
        .toZonedDateTimeISO(BRUSSELS)
        .toPlainDateTime();
      const text = start.add({ minutes }).toString({ smallestUnit: "second" }).replace("T", " ");
      return { kind: "data", text, instant: from.add({ minutes: (nth + 1) * minutes }) };
    });
    const { result, read } = await readFile(way ? all : all.toReversed(), BRUSSELS, { conflicts: "last" });
    expect(result.rejected).toEqual([]);
    expect(read).toEqual(all.map(({ instant }) => [instant.epochMilliseconds, instant.epochMilliseconds]));
  });

  it("refuses ends that are named by their starts where a row more leaves their pass open", async () => {
    const clocks = ["01:45", "02:00", "02:30", "03:00", "02:30", "02:15", "03:00", "03:15"];
    const { result, dates } = await hour(clocks);
    expect(dates).toEqual(["0 23:45", "6 02:00", "7 02:15"]);
    expect(result.rejected.map(({ place }) => place?.row)).toEqual([3, 4, 5, 6, 7]);
  });

  it("counts rows that skipRows leaves out, and rows that are cut off", async () => {
    for (const left of [";test;1", ""]) {
      const clocks = [
        "01:45:00;ok;0",
        "02:00:00;ok;1",
        `02:15:00${left}`,
        `02:00:00${left}`,
        "02:15:00;ok;2",
        "03:00:00;ok;3",
      ];
      const text = clocks.map((clock) => `2026-10-25 ${clock}`).join("\n");
      const { elements } = await mapText(delimited, `t;state;true\n${text}\n`, {
        ...{ rows: "lenient", settings: { ...settings, timeZone: BRUSSELS } },
      });
      expect(elements.flatMap(({ data }) => data.map(({ date, value }) => `${value} ${date.slice(11, 16)}`))).toEqual([
        ...["0 23:45", "1 00:00", "2 01:15", "3 02:00"],
      ]);
    }
  });
});

describe("the order of wall times", () => {
  it.each([
    ["one pass after the other, and the last row of the file", [0, 15, 30, 45, 0, 15], -15, undefined, "ffffss"],
    ["a start inside the hour", [30, 45, 0, 15, 30, 45], undefined, 60, "ffssss"],
    ["backwards", [45, 0, 45, 0], 60, -15, "ssff"],
    ["pairs backwards", [45, 45, 0, 0], 60, -15, "sfsf"],
    ["pairs with no row around", [0, 0, 15, 15], undefined, undefined, "fsfs"],
  ])("is resolved for %s", (_, walls, before, after, expected) => {
    const passes = passesOf({ walls, before, after });
    expect(typeof passes === "string" ? passes : passes.map((pass) => pass[0]).join("")).toBe(expected);
  });

  it.each([
    ["two rows with nothing around them", [0, 0], undefined, undefined, "run forwards"],
    ["a pair and one row", [0, 0, 15], -15, 60, "neither"],
    ["three rows of a time", [0, 0, 0], -15, 60, "neither"],
    ["rows around that contradict each other", [0, 15, 0, 15], -15, -30, "neither"],
  ])("is left undecided for %s", (_, walls, before, after, words) => {
    expect(passesOf({ walls, before, after })).toContain(words);
  });
});

describe("an instant that is unknown yet", () => {
  const clocks = ["01:30", "02:30", "02:30", "03:30"];
  const mapBy = (use: (instant: Temporal.Instant, time: MapContext<unknown>["time"]) => Reading["date"]) =>
    mapWith(
      ({ emit, reject, time }) => {
        clocks.forEach((clock, nth) => {
          const tags: Record<string, string> = { nth: String(nth) };
          try {
            const date = use(time.local(`2026-10-25 ${clock}:00`, FORMAT, BRUSSELS, "byOrder"), time);
            emit({ target: { variableId: 1 }, date, value: nth, version: "v", tags, at: { row: nth + 1 } });
          } catch (thrown) {
            reject({ row: nth + 1 }, (thrown as Error).message);
          }
          tags["nth"] = "changed afterwards";
        });
      },
      { rows: "lenient", rejectShare: 1 },
    );

  it("may be passed on and shifted, with version and tags unchanged", async () => {
    const { elements } = await mapBy((instant, time) => time.addMinutes(instant, 15));
    expect(elements.flatMap(({ data }) => data)).toEqual(
      ["2026-10-24T23:45:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:45:00Z", "2026-10-25T02:45:00Z"].map(
        (date, nth) => ({ date, value: nth, version: "v", tags: { nth: String(nth) } }),
      ),
    );
  });

  it.each<[string, (instant: Temporal.Instant) => Reading["date"]]>([
    ["epochMilliseconds", (instant) => new Date(instant.epochMilliseconds)],
    ["toString", (instant) => instant.toString()],
    ["add", (instant) => instant.add({ minutes: 15 })],
  ])("refuses the row of a mapper that uses its %s, since that may be wrong", async (_, use) => {
    const { result, elements } = await mapBy(use);
    expect(elements.flatMap(({ data }) => data.map(({ value }) => value))).toEqual([0, 3]);
    expect(result.rejected.map(({ place }) => place?.row)).toEqual([2, 3]);
    expect(result.rejected[0]?.message).toContain("its pass is known only when the series has left it");
  });

  it("does not keep a file from ending, and is not a reading when it is not emitted", async () => {
    const mapper = defineMapper({
      ...{ name: "x", summary: "x" },
      map: ({ time }) => void time.local("2026-10-25 02:30:00", FORMAT, BRUSSELS, "byOrder"),
    });
    expect(await mapText(mapper, "")).toMatchObject({ status: "mapped", points: 0, rejectedCount: 0 });
  });
});
