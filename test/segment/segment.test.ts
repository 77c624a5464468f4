import { createHash } from "node:crypto";
import { access, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BatchLimits, PushElement } from "#gateway/model.ts";
import type { Reading, Target } from "#mapping/mapper.ts";
import { createCountingSink } from "#mapping/segment/memory-sinks.ts";
import { trailerAtEnd } from "#mapping/segment/trailer.ts";
import { createSegment } from "#mapping/segment/writer.ts";
import { identifierKind, pushBody, targetWords } from "#wire/index.ts";
import { mapWith, temporaryFolder, WIDE } from "../mapping/kit.ts";

const targets = fc.constantFrom<Target>(
  { variableId: 1 },
  { variableId: 2 },
  { sourceSerialNumber: "M-1", mappingConfig: "kWh" },
  { sourceSerialNumber: "M-1", variableTypeId: 3 },
  { sourceEan: 'Zähler "1"', mappingConfig: "kWh" },
);

const readings: fc.Arbitrary<Reading[]> = fc.array(
  fc.record(
    {
      target: targets,
      date: fc.integer({ min: 0, max: 40 }).map((quarter) => new Date(Date.UTC(2026, 2, 1) + quarter * 900_000)),
      value: fc.double({ noNaN: true, noDefaultInfinity: true }),
      version: fc.constantFrom("a", "b"),
      tags: fc.constantFrom({ quality: "mäßig" }, { a: "1", b: "2" }),
    },
    { requiredKeys: ["target", "date", "value"] },
  ),
  { maxLength: 150 },
);

/** One line a reading: the place that it takes and what stands there. */
function flatten(elements: readonly PushElement[]): Map<string, string> {
  const flat = new Map<string, string>();
  for (const { data, ...target } of elements)
    for (const { date, value, version, tags } of data) {
      const key = `${targetWords(target)} ${date} ${version ?? ""}`;
      expect(flat.has(key), `${key} is there twice`).toBe(false);
      flat.set(key, JSON.stringify([value, tags ?? null]));
    }
  return flat;
}

/** What has to arrive: of one target, date and version the latest. */
function expected(all: readonly Reading[]): Map<string, string> {
  const flat = new Map<string, string>();
  for (const { target, date, value, version, tags } of all) {
    const instant = (date as Date).toISOString().replace(".000Z", "Z");
    flat.set(`${targetWords(target)} ${instant} ${version ?? ""}`, JSON.stringify([value, tags ?? null]));
  }
  return flat;
}

describe("batches", () => {
  it("hold each reading once, the last of a target, date and version, within limits, one kind a batch", async () => {
    const limits = fc.record({
      pointsMax: fc.integer({ min: 1, max: 40 }),
      bytesMax: fc.integer({ min: 220, max: 3000 }),
    });
    await fc.assert(
      fc.asyncProperty(readings, limits, async (all, limit) => {
        const { result, bodies, elements } = await mapWith(({ emit }) => all.forEach(emit), {
          limits: limit,
        });
        if (result.status !== "mapped") throw new Error(result.reason.message);
        expect(flatten(elements)).toEqual(expected(all));
        expect(result.points).toBe(expected(all).size);
        expect(result.superseded).toBe(all.length - result.points);
        expect(result.batches.map(({ sequence }) => sequence)).toEqual(bodies.map((_, at) => String(at + 1)));
        let offset = 0;
        bodies.forEach((body, at) => {
          const batch = pushBody.parse(JSON.parse(body.toString("utf8")));
          const points = batch.reduce((sum, { data }) => sum + data.length, 0);
          const digest = createHash("sha256").update(body).digest("hex");
          expect(result.batches[at]).toEqual({
            sequence: String(at + 1),
            offset,
            length: body.length,
            points,
            digest,
          });
          expect(body.length).toBeLessThanOrEqual(limit.bytesMax);
          expect(points).toBeLessThanOrEqual(limit.pointsMax);
          expect(new Set(batch.map(identifierKind)).size).toBe(1);
          offset += body.length;
        });
      }),
      { numRuns: 80 },
    );
  });

  it("are the same bytes whenever the same readings are mapped", async () => {
    const [all = []] = fc.sample(readings, { numRuns: 1, seed: 7 });
    const run = async () =>
      (await mapWith(({ emit }) => all.forEach(emit), { limits: { pointsMax: 7, bytesMax: 900 } })).bodies;
    expect(await run()).toEqual(await run());
  });

  it("keep the versions of one date in the order of their rows, since the last one pushed is the latest", async () => {
    const target = { variableId: 1 };
    const { elements } = await mapWith(({ emit }) => {
      for (const [version, value] of [
        ["a", 1],
        ["b", 2],
        ["a", 3],
      ] as const)
        emit({ target, date: "2026-03-01T00:00:00Z", value, version });
    });
    expect(elements[0]?.data.map(({ version, value }) => [version, value])).toEqual([
      ["b", 2],
      ["a", 3],
    ]);
  });

  it("hold nothing that a mapper emits when its file has ended, while the next one is mapped", async () => {
    const reading = { target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: 1 };
    let late: (reading: Reading) => void = () => undefined;
    await mapWith(({ emit }) => {
      emit(reading);
      late = emit;
    });
    const { elements } = await mapWith(({ emit }) => {
      late({ ...reading, date: "2026-03-02T00:00:00Z" });
      emit(reading);
      late({ ...reading, date: "2026-03-03T00:00:00Z" });
    });
    expect(elements).toEqual([{ variableId: 1, data: [{ date: reading.date, value: 1 }] }]);
  });

  it("refuse a reading that fits into none, with its row", async () => {
    const { result } = await mapWith(
      ({ emit }) =>
        emit({
          target: { variableId: 1 },
          date: "2026-03-01T00:00:00Z",
          value: 1,
          tags: { note: "x".repeat(500) },
          at: { row: 12 },
        }),
      { limits: { pointsMax: 10, bytesMax: 300 } },
    );
    expect(result).toMatchObject({ status: "failed", reason: { code: "HG-MAP-012", place: { row: 12 } } });
  });
});

const LIMITS: BatchLimits = { pointsMax: 2, bytesMax: 10_000 };

describe("a segment", () => {
  it("has its slices at their offsets, and after them the row of every reading", async () => {
    const path = join(await temporaryFolder(), "spool", "run.segment");
    const { result } = await mapWith(
      async ({ file, emit, eachRow, time }) => {
        await eachRow(file.csv({ columns: true }), (row) =>
          emit({ target: { variableId: Number(row["id"]) }, date: time.iso(row["at"] ?? ""), value: 1 }),
        );
      },
      {
        content:
          "id,at\n1,2026-03-01T01:00:00Z\n\n1,2026-03-01T00:00:00Z\n2,2026-03-01T00:00:00Z\n1,2026-03-01T01:00:00Z\n",
        limits: LIMITS,
        sink: createSegment(path),
      },
    );
    if (result.status !== "mapped") throw new Error(result.reason.message);
    const bytes = await readFile(path);
    for (const { offset, length, digest } of result.batches)
      expect(
        createHash("sha256")
          .update(bytes.subarray(offset, offset + length))
          .digest("hex"),
      ).toBe(digest);
    const trailer = trailerAtEnd(path) ?? expect.fail("no trailer");
    expect(trailer.rows.offset - 1).toBe(result.batches.reduce((sum, { length }) => sum + length, 0));
    const lines = bytes.subarray(trailer.rows.offset, trailer.about.offset).toString("utf8").trim().split("\n");
    const digest = createHash("sha256")
      .update(`${lines.slice(0, -1).join("\n")}\n`)
      .digest("hex");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { sealed: true },
      { sequence: "1", offset: 0, length: 111, rows: [4, 6] },
      { sequence: "2", offset: 111, length: 69, rows: [5] },
      { sha256: digest },
    ]);
  });

  it("leaves nothing behind when the file fails, and replaces what a crash left", async () => {
    const folder = await temporaryFolder();
    const path = join(folder, "run.segment");
    await writeFile(`${path}.part`, "left by a crash");
    const reading = { target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: 1 };
    const tooLarge = { ...reading, date: "2026-03-02T00:00:00Z", tags: { note: "x".repeat(20_000) } };
    const { result } = await mapWith(
      ({ emit }) => {
        emit(reading);
        emit(tooLarge);
      },
      { limits: LIMITS, sink: createSegment(path) },
    );
    expect(result.status).toBe("failed");
    expect(await readdir(folder)).toEqual([]);
    await mapWith(({ emit }) => emit(reading), { limits: LIMITS, sink: createSegment(path) });
    expect((await readdir(folder)).sort()).toEqual(["run.segment"]);
  });

  it("is not made for a file without readings", async () => {
    const path = join(await temporaryFolder(), "run.segment");
    const { result } = await mapWith(() => undefined, { sink: createSegment(path), limits: WIDE });
    expect(result).toMatchObject({ status: "mapped", batches: [], points: 0, period: null });
    await expect(access(path)).rejects.toThrow();
  });

  it("is a fault of the disk, to be tried again, when it cannot be written", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    const sink = createSegment(join(folder, "file", "run.segment"));
    await expect(
      mapWith(({ emit }) => emit({ target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: 1 }), {
        sink,
      }),
    ).rejects.toMatchObject({
      name: "TransientError",
      code: "HG-MAP-014",
    });
  });
});

describe("the counting sink", () => {
  it("tells the batches that a sink with bodies would, without keeping any", async () => {
    const map = ({ emit }: Parameters<Parameters<typeof mapWith>[0]>[0]) => {
      for (let at = 0; at < 20; at += 1) emit({ target: { variableId: 1 }, date: new Date(at * 900_000), value: at });
    };
    const limits: BatchLimits = { pointsMax: 7, bytesMax: 10_000 };
    const kept = await mapWith(map, { limits });
    const counted = await mapWith(map, { limits, sink: createCountingSink() });
    expect(kept.bodies).toHaveLength(3);
    expect(counted.result).toEqual(kept.result);
    expect(Object.keys(createCountingSink())).not.toContain("bodies");
  });
});
