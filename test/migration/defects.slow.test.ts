/**
 * Each defect of a history is named by its plan or by its reconciliation, by itself; through the real mapper,
 * against one hub.
 */
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureShown } from "../cli/shown.ts";
import { zip } from "../runs/archives.ts";
import { GatewayRig, trigger } from "../runs/gateway-rig.ts";
import { headgateHere } from "./migrate-command.ts";

const shown = captureShown();
let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

/** What the history of one test is read by. */
function configure(timeZone = "UTC"): void {
  const metadata = {
    timeZone,
    date: { column: "time", format: "yyyy-MM-dd HH:mm" },
    target: { sourceSerialNumber: "{meter}", mappingConfig: "v" },
    value: "consumption",
    unit: "{unit}",
  };
  rig.configure({ triggers: [trigger("delimited", { mapper: "delimited", metadata, guard: "push" })] });
}

async function migrate(folder: string, ...args: readonly string[]) {
  const { stdout } = await headgateHere(
    rig,
    shown,
    ...["migrate", join(rig.folder, folder, "*.csv"), "--json", ...args],
  );
  return JSON.parse(stdout);
}

const plan = (folder: string) => migrate(folder, "--dry-run");

/** Hours of a day in March 2025, or another first hour and number of them. */
function day(meter: string, date: number, { hours = 24, first = 0, unit = "kWh" } = {}): string {
  let text = "meter,time,consumption,unit\n";
  for (let hour = 0; hour < hours; hour += 1) {
    const at = new Date(Date.UTC(2025, 2, date, first + hour)).toISOString();
    text += `${meter},${at.slice(0, 10)} ${at.slice(11, 16)},${date * 100 + hour + 0.5},${unit}\n`;
  }
  return text;
}

/** Three days of a meter that the hub knows. */
async function history(folder: string): Promise<string> {
  configure();
  await rig.variable(folder);
  for (const date of [3, 4, 5]) rig.put(`${folder}/2025-03-0${date}.csv`, day(folder, date));
  return `sourceSerialNumber=${folder} mappingConfig=v`;
}

it("finds nothing in a history without defects", async () => {
  await history("sound");
  expect(await plan("sound")).toMatchObject({ points: 72, targets: 1, unfit: [], findings: [] });
});

it("names a missing variable with its file and its days", async () => {
  await history("missing");
  rig.put("missing/other.csv", day("nobody", 6));
  const planned = await plan("missing");
  expect(planned.unfit).toEqual([
    {
      what: "missing",
      target: "sourceSerialNumber=nobody mappingConfig=v",
      words: "there is no source with sourceSerialNumber nobody in the account",
      files: ["other.csv"],
      from: "2025-03-06T00:00:00.000Z",
      to: "2025-03-06T23:00:00.000Z",
    },
  ]);
});

it("names the file in another unit than the files before it, and than the variable", async () => {
  const target = await history("unit");
  rig.put("unit/2025-03-06.csv", day("unit", 6, { unit: "Wh" }));
  const planned = await plan("unit");
  // Told once: the other unit is what the service would refuse.
  expect(planned.findings).toMatchObject([
    {
      ...{ kind: "guard", files: ["2025-03-06.csv"], targets: [target], needsPerson: true },
      words: expect.stringMatching(/declared in Wh, but variable \d+ stores kWh .*; in 2025-03-06\.csv$/),
    },
  ]);
  expect(planned.unfit).toEqual([
    expect.objectContaining({
      target,
      words: expect.stringMatching(/^declared in Wh, but variable \d+ stores kWh/),
    }),
  ]);
});

it("names the file in another zone once, with the hour, instead of the seams on both sides of it", async () => {
  const target = await history("zone");
  // This one is in the time of Paris.
  rig.put("zone/2025-03-04.csv", day("zone", 4, { first: 1 }));
  const planned = await plan("zone");
  expect(planned.findings).toMatchObject([
    {
      ...{ kind: "zone", files: ["2025-03-04.csv"], targets: [target] },
      words: expect.stringMatching(/in 2025-03-04\.csv are 1 h later .* another time zone$/),
    },
  ]);
});

it("names target and month of readings that were stored in another zone, or without a variable", async () => {
  const target = await history("stored");
  rig.put("stored/other.csv", day("nobody", 6));
  await migrate("stored");
  for (const date of [3, 4, 5]) rig.put(`paris/2025-03-0${date}.csv`, day("stored", date));
  configure("Europe/Paris");
  await migrate("paris");
  configure();
  const { verified } = await migrate("stored", "--verify");
  expect(verified.differences).toEqual([
    expect.objectContaining({
      target: "sourceSerialNumber=nobody mappingConfig=v",
      from: "2025-03-01T00:00:00.000Z",
      expected: { count: 24, sum: 24 * 612 },
      stored: { count: 0, sum: 0 },
      reason: expect.stringContaining("no such variable"),
    }),
    expect.objectContaining({
      target,
      from: "2025-03-01T00:00:00.000Z",
      reason: "the stored readings are shifted by -1 h: a time zone was taken for another",
    }),
  ]);
});

it("names the row at which a file is cut off, and the days after one that is cut between two rows", async () => {
  const target = await history("cut");
  rig.put("cut/2025-03-04.csv", day("cut", 4, { hours: 9 }));
  const whole = day("cut", 6);
  rig.put("cut/2025-03-06.csv", whole.slice(0, whole.lastIndexOf(",", whole.length - 6)));
  const { findings } = await plan("cut");
  expect(findings).toMatchObject([
    {
      kind: "fault",
      files: ["2025-03-06.csv"],
      words: expect.stringMatching(/^2025-03-06\.csv \(row 25\): /),
    },
    {
      ...{ kind: "gap", targets: [target], files: ["2025-03-04.csv", "2025-03-05.csv"] },
      words:
        `between 2025-03-04.csv and 2025-03-05.csv 15 readings of ${target} are missing, from ` +
        "2025-03-04T09:00:00.000Z: 2025-03-04.csv ends early",
    },
  ]);
});

it("names both of two files with the same content", async () => {
  await history("twice");
  rig.put("twice/copy of 2025-03-04.csv", day("twice", 4));
  const { findings } = await plan("twice");
  expect(findings).toMatchObject([
    {
      kind: "duplicate",
      files: ["2025-03-04.csv", "copy of 2025-03-04.csv"],
      words: "copy of 2025-03-04.csv has the same content as 2025-03-04.csv",
    },
  ]);
});

it("opens archives and compressed files like a run, and names entries that will not arrive", async () => {
  await history("packed");
  const inner = zip([{ name: "a.csv", content: day("packed", 9) }]);
  const days = zip([
    { name: "2025-03-06.csv", content: day("packed", 6) },
    { name: "north/2025-03-07.csv", content: day("packed", 7) },
    { name: "north/other.csv", content: day("nobody", 7) },
    { name: "locked.csv", content: "1", encrypted: true },
    { name: "inner.zip", content: inner },
    { name: "read me.txt", content: "thanks" },
  ]);
  rig.put("packed/days.zip", days);
  rig.put("packed/2025-03-08.csv.gz", gzipSync(day("packed", 8)));
  rig.put("packed/cut.csv.gz", gzipSync(day("packed", 9)).subarray(0, 100));
  const order = ["migrate", join(rig.folder, "packed/*"), "--json"] as const;
  const planned = JSON.parse((await headgateHere(rig, shown, ...order, "--dry-run")).stdout);
  expect(planned).toMatchObject({
    ...{ files: 6, points: 7 * 24, targets: 2 },
    mappers: { delimited: 3, "(archives)": 3 },
    sample: { files: 6, unreadFiles: 0 },
    estimate: { isCounted: true, points: 7 * 24 },
    unfit: [{ files: ["days.zip!/north/other.csv"] }],
  });
  const words = planned.findings.map((finding: { words: string }) => finding.words);
  const [cut, locked, nested, missing, text] = words;
  expect(words).toHaveLength(5);
  expect(cut).toMatch(/^cut\.csv\.gz: .*unexpected end of file/);
  expect(locked).toMatch(/^days\.zip!\/locked\.csv: .*encrypted/);
  expect(nested).toBe("days.zip!/inner.zip: the container is nested too deep");
  expect(missing).toMatch(/^sourceSerialNumber=nobody .*; in days\.zip!\/north\/other\.csv$/);
  expect(text).toBe("no trigger claims days.zip!/read me.txt");

  const carried = JSON.parse((await headgateHere(rig, shown, ...order)).stdout);
  expect(carried.points.mapped).toBe(planned.points);
  rig.put("packed/2025-03-08.csv.gz", gzipSync(day("packed", 8, { hours: 2 })));
  const changed = await headgateHere(rig, shown, ...order);
  expect(changed).toMatchObject({ code: 2, stderr: expect.stringContaining("2025-03-08.csv.gz") });
  const guessed = await headgateHere(rig, shown, ...order, "--dry-run", "--sample", "3");
  const { sample, estimate } = JSON.parse(guessed.stdout);
  // Two of the archives, and two of the others.
  expect(sample).toMatchObject({ files: 4, unreadFiles: 2 });
  expect(estimate.isCounted).toBe(false);
  expect(estimate.points).toBeGreaterThan(48);
});
