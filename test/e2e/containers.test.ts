/** Compressed arrivals, from the drop to the stored points, by the gateway as a real process. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TracedFile } from "#gateway/ledger/ledger.ts";
import { type Packed, zip } from "../runs/archives.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { localDrop, quickPush, Rig, type Stage, standardTrigger } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

const BROKEN = "date,value,variable_id\n2026-03-01T00:00:00Z,not a number,1\n";

/** Readings of a variable of their own. */
async function readings(name: string, count = 8, base = 0): Promise<Readings> {
  return readingsOf(await rig.variable(name), count, base);
}

async function expectStored(...expected: readonly Readings[]): Promise<void> {
  for (const { variableId, points } of expected) expect(await rig.stored(variableId)).toEqual(points);
}

async function untilIdle(stage: Stage, ...codes: number[]) {
  const ended = await stage.untilIdle();
  expect(codes, ended.stderr).toContain(ended.code);
  return JSON.parse(ended.stdout);
}

function traced(stage: Stage, name: string): Promise<readonly TracedFile[]> {
  return stage.inspect((ledger) => ledger.trace(name));
}

/** Of the newest version: state of the run, or of the arrival without one, and the reason for it. */
async function standing(stage: Stage, name: string): Promise<readonly [string, string]> {
  const [file] = await traced(stage, name);
  const run = file?.runs.at(-1)?.run;
  return run === undefined
    ? [file?.arrival.state ?? "unknown", file?.arrival.reason ?? ""]
    : [run.state, run.reason?.message ?? ""];
}

const delivered = /accepted|confirmed/;

test("a zip and a gzip are delivered entry by entry, and archived after all of them", async () => {
  const stage = await rig.stage("whole");
  const [a, b, c] = [await readings("whole-a"), await readings("whole-b", 100), await readings("whole-c")];
  const bytes = zip([
    { name: "standard_a.csv", content: a.csv },
    { name: "deep/in/standard_b.csv", content: b.csv, stored: true },
    { name: "standard_none.csv", content: "date,value,variable_id\n" },
    { name: "__MACOSX/._standard_a.csv", content: "?" },
  ]);
  await stage.put("month.zip", bytes);
  await stage.put("standard_c.csv.gz", gzipSync(c.csv));

  const summary = await untilIdle(stage, 0);
  expect(summary.files).toEqual({ delivered: 3, empty: 1 });
  expect(summary.drops.field.files).toBe(3);
  await expectStored(a, b, c);
  expect(await stage.files()).toEqual([
    expect.stringMatching(/^archive\/.*month.*zip$/),
    expect.stringMatching(/^archive\/.*standard_c.*gz$/),
  ]);

  const [container, ...entries] = await traced(stage, "month.zip");
  expect(container?.runs[0]?.run).toMatchObject({ state: "opened", finishPlan: { action: "archive" } });
  expect(container?.events.map(({ what }) => what)).toEqual(expect.arrayContaining(["run.opened", "source.archived"]));
  expect(entries.map(({ arrival }) => arrival.path)).toEqual([
    "month.zip!/standard_a.csv",
    "month.zip!/deep/in/standard_b.csv",
    "month.zip!/standard_none.csv",
  ]);
  expect(entries.every(({ arrival }) => arrival.goneAt !== null)).toBe(true);
  expect((await traced(stage, "standard_b.csv")).map(({ arrival }) => arrival.parentId)).toEqual([
    container?.arrival.id,
  ]);

  await stage.put("month.zip", bytes);
  expect((await untilIdle(stage, 0)).files).toMatchObject({ duplicate: 1 });
  expect((await standing(stage, "month.zip"))[0]).toBe("cancelled");
  await expectStored(a, b, c);
});

test("a container stays with its reason until a corrected one arrives, and no entry is delivered twice", async () => {
  const stage = await rig.stage("mixed");
  const [good, late] = [await readings("mixed-good"), await readings("mixed-late")];
  const packed = (second: string): Packed[] => [
    { name: "standard_good.csv", content: good.csv },
    { name: "standard_late.csv", content: second },
  ];
  await stage.put("mixed.zip", zip(packed(BROKEN)));
  expect((await untilIdle(stage, 1)).files).toEqual({ delivered: 1, quarantined: 1 });
  expect(await standing(stage, "mixed.zip")).toEqual([
    "opened",
    "the container stays: 1 of 2 entries is not delivered (standard_late.csv is quarantined)",
  ]);
  expect(await stage.files()).toEqual(["mixed.zip"]);
  expect((await untilIdle(stage, 1)).files).toEqual({ delivered: 1, quarantined: 1 });

  await stage.put("mixed.zip", zip(packed(late.csv)));
  // Whether what rests of an earlier version is still a concern is not the matter here.
  const { files } = await untilIdle(stage, 0, 1);
  expect(files).toMatchObject({ delivered: 1, duplicate: 1 });
  expect(await stage.files()).toEqual([expect.stringMatching(/^archive\//)]);
  await expectStored(good, late);
});

test("a container stays for an unmatched entry, and is archived when a trigger claims it", async () => {
  const stage = await rig.stage("rematched");
  const [a, b] = [await readings("rematched-a"), await readings("rematched-b")];
  await stage.put(
    "two.zip",
    zip([
      { name: "standard_a.csv", content: a.csv },
      { name: "other_b.csv", content: b.csv },
    ]),
  );
  expect((await untilIdle(stage, 0)).files).toEqual({ delivered: 1, unmatched: 1 });
  expect((await standing(stage, "two.zip"))[1]).toContain("other_b.csv is unmatched");
  await rm(join(stage.folder, "state", "spool"), { recursive: true });

  const other = {
    ...standardTrigger,
    name: "other",
    fileNamePatternMatches: [{ filterType: "StartsWith", value: "other_" }],
  };
  await stage.configure({ triggers: [standardTrigger, other] });
  expect((await untilIdle(stage, 0)).files).toEqual({ delivered: 1 });
  expect(await stage.files()).toEqual([expect.stringMatching(/^archive\//)]);
  await expectStored(a, b);
});

test("the container is fetched again when the spool lost it, and reported when it was replaced", async () => {
  const stage = await rig.stage("lost");
  const [a, b] = [await readings("lost-a"), await readings("lost-b", 100)];
  const entry = { name: "standard_a.csv", content: a.csv };
  await stage.put("lost.zip", zip([entry]));
  expect((await stage.untilIdle("ledger.run.opened.after")).signal).toBe("SIGKILL");
  await rm(join(stage.folder, "state", "spool"), { recursive: true });
  expect((await untilIdle(stage, 0)).files).toEqual({ delivered: 1 });
  await expectStored(a);

  await stage.put("lost.zip", zip([{ name: "standard_missed.csv", content: a.csv }]));
  expect((await stage.untilIdle("ledger.run.opened.after")).signal).toBe("SIGKILL");
  await rm(join(stage.folder, "state", "spool"), { recursive: true });
  await stage.put("lost.zip", zip([{ name: "standard_b.csv", content: b.csv }]));
  await untilIdle(stage, 0, 1);
  expect((await standing(stage, "standard_missed.csv"))[1]).toContain("the spool lost the container");
  expect((await standing(stage, "standard_b.csv"))[0]).toMatch(delivered);
  await expectStored(a, b);
});

test("entries are delivered in the order of their containers", async () => {
  const stage = await rig.stage("ordered");
  const variableId = await rig.variable("ordered");
  const versions = [1, 2, 3, 4].map((nth) => readingsOf(variableId, 20, nth * 100));
  for (const [nth, { csv }] of versions.entries()) {
    // The later, the smaller: left alone, the last would be opened first.
    const ballast = Buffer.alloc((4 - nth) * 500_000, `${nth}`);
    await stage.put(
      `${nth}.zip`,
      zip([
        { name: "__MACOSX/x", content: ballast, stored: true },
        { name: `standard_${nth}.csv`, content: csv },
      ]),
    );
  }
  expect((await untilIdle(stage, 0)).files).toEqual({ delivered: 4 });
  const runs = await stage.inspect((ledger) => ledger.recentRuns(100));
  const paths = runs.toReversed().map(({ path }) => path);
  const entries = paths.filter((path) => path.includes("!/"));
  expect(entries.map((path) => path.slice(0, path.indexOf("!/")))).toEqual(
    paths.filter((path) => !path.includes("!/")),
  );
});

describe("a refused container", () => {
  const refused: readonly (readonly [string, string, Buffer, string])[] = [
    ["a name that leads out", "out.zip", zip([{ name: "../standard_x.csv", content: "x" }]), "HG-PACK-003"],
    ["a bomb", "bomb.zip", zip([{ name: "standard_x.csv", content: Buffer.alloc(8_000_000) }]), "HG-PACK-002"],
    ["damage", "torn.zip", zip([{ name: "standard_x.csv", content: "x" }]).subarray(0, -4), "HG-PACK-001"],
    ["no gzip", "standard_x.csv.gz", Buffer.from("date,value\n"), "HG-PACK-001"],
    ["too many", "many.zip", zip(Array.from({ length: 6 }, (_, n) => ({ name: `${n}` }))), "HG-PACK-002"],
  ];

  test("is quarantined as a whole with the reason, and none of its entries is processed", async () => {
    const stage = await rig.stage("refused", {
      drops: [{ ...localDrop, archives: { entriesMax: 5 } }],
      triggers: [standardTrigger],
      push: quickPush,
    });
    for (const [, name, bytes] of refused) await stage.put(name, bytes);
    await stage.put("none.zip", zip([]));
    expect((await untilIdle(stage, 1)).files).toEqual({ quarantined: refused.length, empty: 1 });
    for (const [, name, , code] of refused) {
      const files = await traced(stage, name);
      expect(files, name).toHaveLength(1);
      expect(files[0]?.runs[0]?.run).toMatchObject({ state: "quarantined", reason: { code } });
    }
  });

  test("does not include single entries that are encrypted or containers, and the others are delivered", async () => {
    const stage = await rig.stage("partly");
    const good = await readings("partly-good");
    await stage.put(
      "partly.zip",
      zip([
        { name: "standard_secret.csv", content: "x", encrypted: true },
        { name: "inner.zip", content: zip([{ name: "standard_deep.csv", content: good.csv }]) },
        { name: "standard_good.csv", content: good.csv },
      ]),
    );
    expect((await untilIdle(stage, 1)).files).toEqual({ delivered: 1, quarantined: 2 });
    expect((await standing(stage, "standard_secret.csv"))[1]).toContain("encrypted");
    expect((await standing(stage, "inner.zip"))[1]).toContain("is within another");
    expect((await standing(stage, "partly.zip"))[1]).toContain("2 of 3 entries are not delivered");
    await expectStored(good);
  });
});

test("includes containers in containers beyond the depth of the drop", async () => {
  const stage = await rig.stage("nested", { drops: [{ ...localDrop, archives: { depthMax: 2 } }] });
  const [deep, shallow] = [await readings("nested-deep"), await readings("nested-shallow")];
  const inner = zip([
    { name: "standard_deep.csv.gz", content: gzipSync(deep.csv) },
    { name: "standard_shallow.csv", content: shallow.csv },
  ]);
  await stage.put("outer.zip", zip([{ name: "inner.zip", content: inner }]));
  expect((await untilIdle(stage, 1)).files).toEqual({ delivered: 1, quarantined: 1 });
  expect((await standing(stage, "standard_deep.csv.gz"))[1]).toContain("none deeper than 2");
  expect((await standing(stage, "outer.zip"))[1]).toContain("inner.zip is not delivered as a whole");

  await stage.configure({ drops: [{ ...localDrop, archives: { depthMax: 3 } }] });
  await stage.put("outer.zip", zip([{ name: "inner.zip", content: inner }]));
  expect((await untilIdle(stage, 0, 1)).files).toMatchObject({ delivered: 1, duplicate: 1 });
  expect(await stage.files()).toEqual([expect.stringMatching(/^archive\/.*outer/)]);
  await expectStored(deep, shallow);
});

test("a drop that unpacks nothing, and a workbook anywhere, have ordinary files", async () => {
  const stage = await rig.stage("untouched", {
    drops: [
      { ...localDrop, archives: { unpack: false } },
      { ...localDrop, name: "second", path: "./second" },
    ],
  });
  const bytes = zip([{ name: "standard_a.csv", content: "x" }]);
  await stage.put("plain.zip", bytes);
  await stage.put("book.xlsx", bytes, join(stage.folder, "second"));
  expect((await untilIdle(stage, 0)).files).toEqual({ unmatched: 2 });
  expect(await traced(stage, "standard_a.csv")).toEqual([]);
});

describe.concurrent("a gateway killed during a container loses nothing and delivers nothing twice", () => {
  const POINTS = [
    "run.fetch.stored",
    "run.fetch.stored#2",
    "ledger.run.opened.before",
    "ledger.run.opened.after",
    "ledger.run.claimed.after#2",
    "ledger.run.claimed.before#3",
    "ledger.run.fetched.after#3",
    "ledger.run.mapped.after#2",
    "ledger.run.accepted.after",
    "ledger.run.accepted.before#2",
    "ledger.arrival.unmatched.after",
    "ledger.run.noted.before#2",
    "ledger.run.noted.after#4",
    "drops.finish.before-rename",
    "drops.finish.after-rename",
  ];
  test.each(POINTS)("%s", { timeout: 120_000 }, async (point) => {
    const name = `killed-${point.replaceAll(/[^a-z0-9]/g, "-")}`;
    const stage = await rig.stage(name);
    const sets = [await readings(`${name}-a`), await readings(`${name}-b`, 100), await readings(`${name}-c`)];
    const [a, b, c] = sets.map(({ csv }) => csv);
    await stage.put(
      "whole.zip",
      zip([
        { name: "standard_a.csv", content: a ?? "" },
        { name: "standard_b.csv", content: b ?? "" },
      ]),
    );
    await stage.put(
      "stays.zip",
      zip([
        { name: "standard_c.csv", content: c ?? "" },
        { name: "notes.txt", content: "x" },
      ]),
    );
    const killed = await stage.untilIdle(point);
    expect(killed.signal, `${point} was passed: ${killed.stderr}`).toBe("SIGKILL");
    await untilIdle(stage, 0);
    expect(stage.lane.conflicts).toEqual([]);
    await expectStored(...sets);
    for (const file of ["standard_a.csv", "standard_b.csv", "standard_c.csv"]) {
      expect(await traced(stage, file)).toHaveLength(1);
      expect((await standing(stage, file))[0]).toMatch(delivered);
    }
    expect((await standing(stage, "stays.zip"))[1]).toContain(
      "1 of 2 entries is not delivered (notes.txt is unmatched)",
    );
    expect(await stage.files()).toEqual([expect.stringMatching(/^archive\/.*whole/), "stays.zip"]);
  });
});
