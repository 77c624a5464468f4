import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MapContext, Reading, Target } from "#mapping/mapper.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import { createSegment } from "#mapping/segment/writer.ts";
import { mapWith, temporaryFolder } from "./kit.ts";

const START = Date.UTC(2026, 2, 1);

const targets = fc.constantFrom<Target>(
  { sourceSerialNumber: "M-1", mappingConfig: "kWh" },
  { variableId: 7 },
  { sourceSerialNumber: "M-2", mappingConfig: "kWh" },
  { sourceEan: 'Zähler "1"', variableTypeId: 3 },
  { variableId: 8 },
);

/** Few dates, so that many readings repeat one, near and far. */
const readings: fc.Arbitrary<Reading[]> = fc.array(
  fc.record(
    {
      target: targets,
      date: fc.integer({ min: -20, max: 20 }).map((step) => new Date(START + step * 900_001)),
      value: fc.double({ noNaN: true, noDefaultInfinity: true }),
      version: fc.constantFrom("a", "b", "ß"),
      tags: fc.constantFrom<Record<string, string>>({ quality: "mäßig" }, { a: "x".repeat(300) }),
      batchTags: fc.constantFrom({ source: "logger" }, { source: "hand" }),
      at: fc.record({ row: fc.integer({ min: 1, max: 4_000_000_000 }), sheet: fc.constantFrom("März", "B") }),
    },
    { requiredKeys: ["target", "date", "value"] },
  ),
  { maxLength: 120 },
);

const emitAll =
  (all: readonly Reading[]) =>
  ({ emit }: MapContext<unknown>) =>
    all.forEach(emit);

const reading = (minute: number, value: number, more: Partial<Reading> = {}): Reading => ({
  target: { variableId: 1 },
  date: new Date(START + minute * 60_000),
  value,
  ...more,
});

describe("readings that do not fit into memory", () => {
  it(
    "become the same bytes, the same row index and the same counts as those that do, wherever they are " + "spilled",
    async () => {
      const folder = await temporaryFolder();
      const limits = fc.record({
        pointsMax: fc.integer({ min: 1, max: 40 }),
        bytesMax: fc.integer({ min: 700, max: 5000 }),
      });
      await fc.assert(
        fc.asyncProperty(readings, limits, fc.integer({ min: 1, max: 50 }), async (all, limit, rowsMax) => {
          const inMemory = join(folder, "memory", "run.segment");
          const spilled = join(folder, "spilled", "run.segment");
          const one = await mapWith(emitAll(all), { limits: limit, sink: createSegment(inMemory) });
          const sink = createSegment(spilled);
          const other = await mapWith(emitAll(all), { limits: limit, sink, rowsInMemoryMax: rowsMax });
          expect(other.result).toEqual(one.result);
          if (all.length === 0) return;
          expect(await readFile(spilled)).toEqual(await readFile(inMemory));
        }),
        { numRuns: 120 },
      );
    },
  );

  it("are corrected by a much later row", async () => {
    const map = ({ emit }: MapContext<unknown>) => {
      for (let minute = 0; minute < 5000; minute += 1) emit(reading(minute, minute));
      emit(reading(3, -1));
      emit(reading(3, -2, { version: "final" }));
      emit(reading(4999, -3));
    };
    const { result, elements } = await mapWith(map, { rowsInMemoryMax: 64 });
    expect(result).toMatchObject({ points: 5001, superseded: 2 });
    const data = elements.flatMap((element) => element.data);
    expect(data.slice(2, 6).map(({ value, version }) => [value, version])).toEqual([
      [2, undefined],
      [-1, undefined],
      [-2, "final"],
      [4, undefined],
    ]);
    expect(data.at(-1)?.value).toBe(-3);
  });

  it("leave no file behind, whether the file is mapped, refused, or the mapper throws", async () => {
    const folder = await temporaryFolder();
    const path = join(folder, "run.segment");
    const seen: string[][] = [];
    const run = (end: () => void) =>
      mapWith(
        async ({ emit }) => {
          for (let minute = 0; minute < 50; minute += 1) emit(reading(minute, minute));
          seen.push(await readdir(folder));
          end();
        },
        { sink: createSegment(path), rowsInMemoryMax: 10, limits: { pointsMax: 10, bytesMax: 10_000 } },
      );
    await run(() => {
      throw new Error("broken");
    });
    expect(await readdir(folder)).toEqual([]);
    expect((await run(() => undefined)).result).toMatchObject({ points: 50 });
    expect((await readdir(folder)).sort()).toEqual(["run.segment"]);
    // Not even while it is mapped does the spilled part have a name that a crash would leave.
    expect(seen).toEqual([[], []]);
  });

  it("are a fault of the disk when they cannot be spilled, also when the mapper catches the error", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const sink = { ...createMemorySink(), spillPath: join(folder, "file", "spill") };
    const careless = ({ emit }: MapContext<unknown>) => {
      for (let minute = 0; minute < 20; minute += 1)
        try {
          emit(reading(minute, minute));
        } catch {
          // As a careless author writes it.
        }
    };
    const fault = { name: "TransientError", code: "HG-MAP-014" };
    await expect(mapWith(careless, { sink, rowsInMemoryMax: 10 })).rejects.toMatchObject(fault);
    const plain = emitAll(Array.from({ length: 20 }, (_, minute) => reading(minute, minute)));
    await expect(mapWith(plain, { sink, rowsInMemoryMax: 10 })).rejects.toMatchObject(fault);
  });
});

describe("tags that differ in each reading", () => {
  const all = Array.from({ length: 15_000 }, (_, minute) =>
    reading(14_999 - minute, minute, { tags: { note: `Nr. ${minute} ${"·".repeat(100)}` } }),
  );

  it("are spilled too before they fill the memory", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const sink = { ...createMemorySink(), spillPath: join(folder, "file", "spill") };
    await expect(mapWith(emitAll(all), { sink })).rejects.toMatchObject({ code: "HG-MAP-014" });
  });

  it("stay with their readings", async () => {
    const { elements } = await mapWith(emitAll(all));
    const data = elements.flatMap((element) => element.data);
    expect(data).toHaveLength(15_000);
    data.forEach(({ value, tags }, nth) => {
      expect(value).toBe(14_999 - nth);
      if (!tags?.["note"]?.startsWith(`Nr. ${value} ·`)) throw new Error(`${value} has ${tags?.["note"]}`);
    });
  });
});
