/** What a plan reads of a large history, and what it makes of it. */
import fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import { estimate, type FileMeasure } from "#gateway/migration/plan/estimate.ts";
import { pushRateOf } from "#gateway/migration/plan/push-rates.ts";
import { chooseSample, parseSample, SAMPLE_DEFAULT } from "#gateway/migration/plan/sample.ts";
import { parseRate } from "#gateway/migration/run/rate.ts";
import { captureShown } from "../cli/shown.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { migrateHere } from "./migrate-command.ts";

const shown = captureShown();

it("parses the forms of a sample", () => {
  expect(parseSample("all")).toEqual({ files: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY });
  expect(parseSample("500")).toEqual({ files: 500, bytes: Number.POSITIVE_INFINITY });
  expect(parseSample("1GB")).toEqual({ files: Number.POSITIVE_INFINITY, bytes: 1_000_000_000 });
  for (const text of ["0", "-1", "1.5", "some", "0MB"]) expect(parseSample(text)).toBeUndefined();
});

it("chooses all files of a small history, and of a large one some of each group within the limits", () => {
  const file = fc.record({ size: fc.nat(1000), group: fc.constantFrom("a", "b") });
  const limits = fc.record({
    files: fc.integer({ min: 1, max: 40 }),
    bytes: fc.integer({ min: 1, max: 9000 }),
  });
  fc.assert(
    fc.property(fc.array(file, { maxLength: 60 }), limits, (files, most) => {
      const chosen = chooseSample(files, most);
      const bytes = (indexes: Iterable<number>) =>
        [...indexes].reduce((sum, index) => sum + (files[index]?.size ?? 0), 0);
      expect(chosen).toEqual([...new Set(chosen)].sort((one, other) => one - other));
      if (files.length <= most.files && bytes(files.keys()) <= most.bytes) expect(chosen).toHaveLength(files.length);
      expect(new Set(chosen.map((index) => files[index]?.group))).toEqual(new Set(files.map(({ group }) => group)));
      expect(chosen.length).toBeLessThanOrEqual(most.files + 2);
      // One file of each group is read even where it is larger than that.
      expect(bytes(chosen)).toBeLessThanOrEqual(most.bytes + 2000);
    }),
  );
});

it("spreads a sample over names and sizes, with neighbours side by side", () => {
  const files = Array.from({ length: 10_000 }, (_, at) => ({
    size: 100 + ((at * 7919) % 10_000),
    group: "a",
  }));
  const chosen = chooseSample(files, { files: 120, bytes: 200_000_000 });
  expect(chosen).toHaveLength(120);
  expect([chosen[0], chosen.at(-1)]).toEqual([0, 9_999]);
  const sizes = chosen.map((index) => files[index]?.size ?? 0).sort((one, other) => one - other);
  expect([sizes[0], sizes.at(-1)]).toEqual([100, 10_099]);
  const widest = (values: readonly number[]) =>
    Math.max(...values.slice(1).map((value, at) => value - (values[at] ?? 0)));
  expect(widest(chosen)).toBeLessThan(500);
  expect(widest(sizes)).toBeLessThan(500);
  expect(chosen.filter((index) => chosen.includes(index + 1)).length).toBeGreaterThan(30);
});

const measure = (size: number, points: number, more: Partial<FileMeasure> = {}): FileMeasure => ({
  ...{ group: "a", size, points, rejected: 0, sent: points * 50, seconds: 0.01 + size * 1e-6 },
  ...more,
});
const nothingKnown = { rate: null, drainRate: null, measured: null };

it("extrapolates by the bytes of each group, and durations by the cost of a file and of a byte", () => {
  const all = [
    ...Array.from({ length: 100 }, () => ({ size: 10_000, group: "a" })),
    ...Array.from({ length: 50 }, () => ({ size: 2_000, group: "b" })),
  ];
  const read = [
    measure(10_000, 500, { rejected: 1 }),
    measure(10_000, 500, { rejected: 1 }),
    measure(2_000, 20, { group: "b" }),
    measure(2_000, 20, { group: "b" }),
  ];
  const found = estimate(all, { files: read, seconds: 0.03 }, nothingKnown);
  expect(found).toMatchObject({ isCounted: false, points: 51_000, pointsMargin: 0, rejected: 100 });
  // Two at a time: 100 files of 20 ms and 50 of 12 ms.
  expect(found.mappingSeconds).toBeCloseTo(1.219, 2);
  expect(found).toMatchObject({ sendingSeconds: null, seconds: found.mappingSeconds });
  expect(found.standsOn[1]).toContain("was not measured, since nothing was sent");
});

it("reports its uncertainty when files of one size contain different numbers of readings", () => {
  const counts = Array.from({ length: 200 }, (_, at) => 50 + ((at * 37) % 100));
  const all = counts.map(() => ({ size: 1000, group: "a" }));
  const read = counts.filter((_, at) => at % 10 === 0).map((points) => measure(1000, points));
  const { points, pointsMargin } = estimate(all, { files: read, seconds: 1 }, nothingKnown);
  expect(pointsMargin).toBeGreaterThan(500);
  expect(pointsMargin).toBeLessThan(points / 3);
  expect(Math.abs(points - counts.reduce((sum, one) => sum + one, 0))).toBeLessThan(pointsMargin);
});

it("uses the slowest of the configured and the measured rate of sending, and names it", () => {
  const files = { files: [measure(1000, 1000)], seconds: 0.1 };
  const all = [{ size: 1000, group: "a" }];
  const measured = { pointsPerSecond: 500, migration: "3f2a" };
  const of = (more: object) => {
    const { sendingSeconds, standsOn } = estimate(all, files, { ...nothingKnown, ...more });
    return [sendingSeconds, standsOn[1]];
  };
  expect(of({ measured })).toEqual([2, "sending: migration 3f2a sent 500 readings/s"]);
  expect(of({ measured, rate: parseRate("100/s") ?? null })).toEqual([10, "sending: --rate 100/s"]);
  expect(of({ rate: parseRate("5KB/s") ?? null })[0]).toBe(10);
  expect(of({ measured, drainRate: 250 })).toEqual([4, "sending: push.drainRate 250"]);
});

it("measures sending while batches follow each other, and not the pauses between", async () => {
  const batches = [0, 1, 2, 3, 3600, 3601].map((second) => ({
    acceptedAt: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
    points: 200,
  }));
  const ledger = { recentRuns: async () => [{ id: "r" }], batches: async () => batches };
  expect(await pushRateOf(ledger as never)).toBe(200);
  const few = { ...ledger, batches: async () => batches.slice(0, 1) };
  expect(await pushRateOf(few as never)).toBeNull();
});

it("distinguishes counted, estimated and unchecked findings of a sampled plan", async () => {
  const rig = await GatewayRig.start();
  onTestFinished(() => rig.close());
  rig.configure({});
  const id = await rig.variable("a");
  for (let file = 0; file < 40; file += 1) {
    const rows = Array.from(
      { length: 24 },
      (_, hour) => `${id},${new Date(Date.UTC(2025, 0, 1 + file, hour)).toISOString()},${hour + 10}\n`,
    );
    rig.put(`history/${file}.csv`, `variable_id,date,value\n${rows.join("")}`);
  }
  const whole = JSON.parse((await migrateHere(rig, shown, "--dry-run", "--json")).stdout);
  expect(whole).toMatchObject({
    points: 960,
    sample: { files: 40, unreadFiles: 0, unreadBytes: 0, words: null },
    estimate: { isCounted: true, points: 960, pointsMargin: 0 },
    findings: [],
  });

  const args = ["--dry-run", "--sample", "8", "--rate", "96/s"];
  const { code, stdout } = await migrateHere(rig, shown, ...args, "--json");
  const plan = JSON.parse(stdout);
  expect(code).toBe(0);
  expect(plan).toMatchObject({
    files: 40,
    mappers: { standard: 40 },
    points: 192,
    sample: { files: 8, unreadFiles: 32, unreadBytes: whole.bytes - plan.sample.bytes },
    estimate: { isCounted: false, points: 960, sendingSeconds: 10 },
    period: { from: "2025-01-01T00:00:00.000Z", to: "2025-02-09T23:00:00.000Z" },
    // The days between two of the sample are in files that nobody read.
    findings: [],
  });
  expect(plan.sample.words).toMatch(/^8 of 40 files read: .* known for these alone.*; --sample all reads every/);

  const table = (await migrateHere(rig, shown, ...args)).stdout;
  expect(table).toContain("8 of 40 files read: targets, period, units, overlaps");
  expect(table).toMatch(/points +about 960 ± \d+ \(estimated\); 192 in the files read/);
  expect(table).toMatch(/duration +about \d+ s \(estimated\): mapping .*, sending 10 s/);
  expect(table).toContain("sending: --rate 96/s; how fast the service takes readings was not measured");
  // Refused before anything is sent.
  expect(await migrateHere(rig, shown, "--sample", "8")).toMatchObject({ code: 2 });
  expect(await rig.stored(id)).toEqual({});
});

it("reads all of a history that is little beyond the limits, unless a sample was requested", () => {
  const files = (many: number) => Array.from({ length: many }, () => ({ size: 1_000, group: "standard" }));
  expect(chooseSample(files(301), SAMPLE_DEFAULT)).toHaveLength(301);
  expect(chooseSample(files(450), SAMPLE_DEFAULT)).toHaveLength(450);
  expect(chooseSample(files(451), SAMPLE_DEFAULT)).toHaveLength(300);
  const asked = parseSample("300") ?? SAMPLE_DEFAULT;
  expect(chooseSample(files(301), asked)).toHaveLength(300);
});
