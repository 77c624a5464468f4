import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { TargetFacts } from "#gateway/model.ts";
import { isAbout, readFacts } from "#gateway/spool/target-index.ts";
import { aboutLines, type RunAbout } from "#mapping/segment/layout.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-about-"));
const path = join(folder, "run.about");
afterAll(() => rmSync(folder, { recursive: true }));

const write = (about: RunAbout) => writeFileSync(path, [...aboutLines(about)].join(""));

const PERIOD = { from: "2026-03-01T00:00:00Z", to: "2026-03-02T00:00:00Z" };
const AT = Date.parse("2026-03-01T12:00:00Z");
const facts = (meter: number): TargetFacts => ({
  target: { sourceSerialNumber: `M ${meter}`, mappingConfig: "a=b" },
  points: 96,
  fromMs: AT,
  toMs: AT,
  untagged: 96,
  unit: "kWh",
});

async function read(perPart: number): Promise<{ whole: boolean; parts: TargetFacts[][] }> {
  const parts: TargetFacts[][] = [];
  const whole = await readFacts({ path }, perPart, async (part) => {
    parts.push([...part]);
  });
  return { whole, parts };
}

describe("what the batches of a run are about", () => {
  it("is handed out as it was noted, in parts of bounded size", async () => {
    const targets = Array.from({ length: 2_345 }, (_, meter) => facts(meter));
    write({ ...PERIOD, targets });
    const { whole, parts } = await read(1_000);
    expect(whole).toBe(true);
    expect(parts.map(({ length }) => length)).toEqual([1_000, 1_000, 345]);
    expect(parts.flat()).toEqual(targets);
  });

  it("is not taken for whole when a power cut has torn it, or when it is not here", async () => {
    write({ ...PERIOD, targets: [facts(1), facts(2)] });
    const { length } = readFileSync(path);
    for (const bytes of [length - 10, Math.floor(length / 2), 20, 0]) {
      truncateSync(path, bytes);
      expect((await read(10)).whole).toBe(false);
    }
    rmSync(path);
    expect((await read(10)).whole).toBe(false);
  });

  it("is not taken for whole when a byte of it was changed, and then excludes nothing from a search", async () => {
    const fields = { sourceSerialNumber: "M 9", mappingConfig: "a=b" };
    write({ ...PERIOD, targets: [facts(1), facts(9)] });
    expect((await read(10)).whole).toBe(true);
    const bytes = readFileSync(path);
    for (const text of ["2026-03-02", "M 9", `"points":96`, `"sha256":"`]) {
      const changed = Buffer.from(bytes);
      const at = changed.indexOf(text) + text.length - 1 + (text.startsWith(`"sha`) ? 1 : 0);
      changed[at] = (changed[at] ?? 0) ^ 1;
      writeFileSync(path, changed);
      expect((await read(10)).whole, text).toBe(false);
      expect(await isAbout({ path }, { fields, atMs: Date.parse("2026-03-01T23:00:00Z") })).toBe(true);
    }
  });

  it("names targets with whatever characters ends a line elsewhere", async () => {
    const target = { ...facts(1), target: { sourceSerialNumber: "M\u2028\u20291", mappingConfig: "a" } };
    write({ ...PERIOD, targets: [target] });
    expect(await read(10)).toEqual({ whole: true, parts: [[target]] });
  });

  it("tells which targets it may hold at which time", async () => {
    const query = { fields: { mappingConfig: "a=b", sourceSerialNumber: "M 1" }, atMs: AT };
    write({ ...PERIOD, targets: [facts(0), facts(1)] });
    expect(await isAbout({ path }, query)).toBe(true);
    expect(await isAbout({ path }, { ...query, fields: { ...query.fields, mappingConfig: "c" } })).toBe(false);
    expect(await isAbout({ path }, { ...query, atMs: AT + 86_400_000 })).toBe(false);
  });
});
