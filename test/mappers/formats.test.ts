/** What mappers of fixed formats share, and the rules of theirs that have an inverse. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PushElement } from "#gateway/model.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { targetMaker, targetSetting } from "../../mappers/_formats/target.ts";
import { readSegments, type Segment } from "../../mappers/mscons/segments.ts";
import { inputFile, WIDE } from "../mapping/kit.ts";

async function mapBundled(name: string, content: string, settings: Readonly<Record<string, unknown>> = {}) {
  const modulePath = (await locateMapper([BUNDLED_FOLDER], name)) ?? "";
  const sink = createMemorySink();
  const result = await mapFile({
    inputPath: await inputFile(content, "input.txt"),
    fileName: "input.txt",
    filePath: "input.txt",
    mapper: await loadMapper(modulePath, await digestMapper(modulePath)),
    settings,
    rows: "strict",
    limits: WIDE,
    sink,
    signal: new AbortController().signal,
  });
  const elements = sink.bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as PushElement[]);
  return { result, elements };
}

it("reads a date format as a pattern unless it is a known word", async () => {
  const { result } = await mapBundled("delimited", "when,v\n2026-03-01,1\n", {
    timeZone: "UTC",
    date: { column: "when", format: "constructor" },
    target: { variableId: 901 },
    value: "v",
  });
  expect(result).toMatchObject({ reason: { message: expect.stringContaining("constructor") } });
});

describe("a target template", () => {
  const setting = targetSetting(["meter", "register"], {
    sourceSerialNumber: "{meter}",
    mappingConfig: "kWh",
  });

  it("accepts the default, and one identifier with one selector", () => {
    expect(setting.parse(undefined)).toEqual({ sourceSerialNumber: "{meter}", mappingConfig: "kWh" });
    expect(setting.safeParse({ variableId: "{register}" }).success).toBe(true);
    expect(setting.safeParse({ sourceId: 7, variableTypeId: 3 }).success).toBe(true);
  });

  it.each([
    [{ sourceEan: "{ean}", mappingConfig: "x" }, "there is no {ean}; there are {meter}, {register}"],
    [{ sourceEan: "{meter}" }, "give exactly one of mappingConfig and variableTypeId"],
    [
      { sourceEan: "{meter}", mappingConfig: "x", variableTypeId: 1 },
      "give exactly one of mappingConfig and variableTypeId",
    ],
    [{ sourceEan: "{meter}", meterNumber: "{meter}", mappingConfig: "x" }, "give exactly one identifier"],
    [{ variableId: 1, mappingConfig: "x" }, "variableId takes no other field"],
  ])("refuses %j", (template, words) => {
    const message = setting
      .safeParse(template)
      .error?.issues.map((issue) => issue.message)
      .join("; ");
    expect(message).toContain(words);
  });

  it("returns the same frozen target for equal values, renamed before text is appended", () => {
    const make = targetMaker({ meterNumber: "{meter}", mappingConfig: "{register}" }, { E1: "import" });
    const target = make({ meter: "M-1", register: "E1" });
    expect(target).toEqual({ meterNumber: "M-1", mappingConfig: "import" });
    expect(make({ meter: "M-1", register: "E1" })).toBe(target);
    expect(Object.isFrozen(target)).toBe(true);
    expect(make({ meter: "M-1", register: "E1" }, "-index")).toEqual({
      meterNumber: "M-1",
      mappingConfig: "import-index",
    });
  });

  it("refuses a value that is empty or not a whole number where the template needs one", () => {
    expect(() => targetMaker({ sourceEan: "{meter}", mappingConfig: "x" })({ meter: "" })).toThrow(
      "the target needs {meter} as sourceEan, and it is empty here",
    );
    expect(() => targetMaker({ variableId: "{meter}" })({ meter: "M-1" })).toThrow("variableId is not a whole number");
    expect(targetMaker({ variableId: "{meter}" })({ meter: "12" })).toEqual({ variableId: 12 });
  });
});

describe("EDIFACT segments", () => {
  const signs = ["+", ":", "'", "*", "|", "~", "^", "!", "?"];
  const written = fc.record({
    separators: fc.shuffledSubarray(signs, { minLength: 4, maxLength: 4 }),
    segments: fc.array(
      fc.array(
        fc.array(fc.string({ unit: fc.constantFrom("A", "7", " ", "é", "\n", ...signs), maxLength: 6 }), {
          minLength: 1,
          maxLength: 3,
        }),
        { minLength: 1, maxLength: 4 },
      ),
      { minLength: 1, maxLength: 6 },
    ),
    chunk: fc.integer({ min: 1, max: 40 }),
    linesEnd: fc.boolean(),
  });

  it("are parsed as written, whatever the separators and wherever chunks end", async () => {
    await fc.assert(
      fc.asyncProperty(written, async ({ separators, segments, chunk, linesEnd }) => {
        const marks = linesEnd ? [...separators.slice(0, 3), "\n"] : separators;
        const [component = "", element = "", release = "", terminator = ""] = marks;
        const escaped = (text: string) =>
          [...text].map((sign) => (marks.includes(sign) ? release + sign : sign)).join("");
        // Line breaks within a segment have no meaning unless they end it.
        const wanted = segments.map((elements) =>
          elements.map((parts) => parts.map((part) => (linesEnd ? part : part.replaceAll("\n", "")))),
        );
        const text = [
          ["UNB", "UNOC"],
          ...wanted.map((elements) => ["XYZ", ...elements.map((parts) => parts.map(escaped).join(component))]),
        ]
          .map((elements) => elements.join(element) + terminator)
          .join("");
        const bytes = Buffer.from(`UNA${component}${element}.${release} ${terminator}${text}`, "latin1");
        const read: Segment[] = [];
        for await (const found of readSegments(inChunks(bytes, chunk)).chunks) read.push(...found);
        expect(read.slice(1).map(({ elements }) => elements)).toEqual(wanted);
      }),
      { numRuns: 300 },
    );
  });
});

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe("the repeated hour of autumn at Fluvius", () => {
  const HEADER =
    "Van (datum);Van (tijdstip);Tot (datum);Tot (tijdstip);EAN-code;Meter;Register;Volume;Eenheid;Validatiestatus";
  const ZONE = "Europe/Brussels";
  const from = Temporal.Instant.from("2026-10-24T22:00:00Z");

  function row(quarter: number): string {
    const wall = (minutes: number) => from.add({ minutes }).toZonedDateTimeISO(ZONE).toPlainDateTime();
    const [start, end] = [wall(quarter * 15), wall(quarter * 15 + 15)];
    const day = ({ year, month, day }: Temporal.PlainDateTime) =>
      `${String(day).padStart(2, "0")}-${String(month).padStart(2, "0")}-${year}`;
    const clock = (time: Temporal.PlainDateTime) => time.toPlainTime().toString();
    return `${day(start)};${clock(start)};${day(end)};${clock(end)};="541448800000000001";M;Afname;${quarter};kWh;Uitgelezen`;
  }

  it("is resolved with adjacent passes, with consecutive ones, and in a file that runs backwards", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 7 }),
        fc.integer({ min: 16, max: 100 }),
        fc.constantFrom("sideBySide", "oneAfterTheOther", "backwards"),
        async (first, last, order) => {
          const quarters = Array.from({ length: last - first }, (_, at) => first + at);
          // The first pass has the quarters 8 to 11, the second 12 to 15.
          if (order === "sideBySide")
            quarters.splice(8 - first, 8, ...[8, 9, 10, 11].flatMap((quarter) => [quarter, quarter + 4]));
          if (order === "backwards") quarters.reverse();
          const { elements } = await mapBundled("fluvius", [HEADER, ...quarters.map(row), ""].join("\n"), {
            timeZone: ZONE,
          });
          const wanted = Array.from({ length: last - first }, (_, at) => ({
            date: from.add({ minutes: (first + at) * 15 }).toString(),
            value: first + at,
          }));
          expect(elements[0]?.data).toEqual(wanted);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe("qualities of a NEM12 day", () => {
  it("reach every interval once, however the 400 records divide the day", async () => {
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 47 }), { maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(cuts, async (inside) => {
        const ends = [...inside.sort((a, b) => a - b), 48];
        const records = ends.map((end, at) => `400,${(ends[at - 1] ?? 0) + 1},${end},S${11 + at},${at + 1},`);
        const values = Array.from({ length: 48 }, (_, at) => at + 1).join(",");
        const { elements } = await mapBundled(
          "nem12",
          [
            "100,NEM12,202607021135,A,B",
            "200,6407001234,E1,E1,E1,N1,M,kWh,30,",
            `300,20260701,${values},V,,,20260702000000,`,
            ...records,
            "900",
            "",
          ].join("\n"),
        );
        const told = elements[0]?.data.map(({ value, tags }) => [value, tags?.["method"]]);
        expect(told).toEqual(
          Array.from({ length: 48 }, (_, at) => [at + 1, String(11 + ends.findIndex((end) => end > at))]),
        );
      }),
      { numRuns: 40 },
    );
  });
});
