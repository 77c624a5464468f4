/** From a stored reading back to its file, sheet and row, long after the run came to rest. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findReadings } from "#gateway/spool/search.ts";
import { targetWords } from "#wire/target.ts";
import { GatewayRig, until } from "./gateway-rig.ts";

const run = promisify(execFile);
const main = resolve(import.meta.dirname, "../../src/main.ts");
let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const day = (number: number) => `2026-03-${String(number).padStart(2, "0")}T00:00:00Z`;

it("finds the rows of a reading in every file that gave it, the newest first, also with several batches", async () => {
  const [one, other] = [await rig.variable("one"), await rig.variable("other")];
  const rows = (from: number) =>
    Array.from(
      { length: 9 },
      (_, at) => `${other},${day(at + 1)},${from + at}\n${one},${day(at + 1)},${from + at}.5\n`,
    );
  rig.put("in/a.csv", `variable_id,date,value\n${rows(100).join("")}`);
  const gateway = await rig.open({
    push: { batch: { points: 4 }, confirm: { by: "read-back", pollEvery: "50ms" } },
  });
  await until("the first file is stored", async () => (await rig.stored(one))["2026-03-09"] === 108.5);
  rig.put("in/b.csv", `variable_id,date,value\n\n${one},${day(5)},7\n`, new Date("2026-03-02T00:00:00Z"));
  await until("the second file is stored", async () => (await rig.stored(one))["2026-03-05"] === 7);
  await until("the gateway is idle", () => gateway.isIdle());
  await until(
    "nothing but the kept files is in the spool",
    async () => readdirSync(join(rig.folder, "state/spool/segments")).length === 0,
  );

  const { stdout } = await headgate(
    "trace",
    "--target",
    `variableId=${one}`,
    "--date",
    "2026-03-05T01:00:00+01:00",
    "--json",
  );
  expect(JSON.parse(stdout)).toMatchObject([
    {
      path: "b.csv",
      row: 3,
      value: 7,
      drop: "in",
      state: "confirmed",
      mapper: expect.stringContaining("standard"),
    },
    { path: "a.csv", row: 11, value: 104.5, sequence: "4" },
  ]);
  const shown = await headgate("trace", "--target", `{"variableId":${other}}`, "--date", day(1));
  expect(shown.stdout).toMatch(/100 +in +a\.csv +2 +\w{26} \(confirmed\) +\w{26}-\d/);

  const missing = await headgate("trace", "--target", `variableId=${one}`, "--date", day(30)).catch((thrown) => thrown);
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("keepInputs")]);
  const wrong = await headgate("trace", "--target", "meter=1", "--date", day(1)).catch((thrown) => thrown);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("names no target")]);
});

it("tells texts of targets apart that hold what separates batches", async () => {
  const name = `a][{"data":[]}] b`;
  const siteId = await rig.client.postSite({ name: "S", typeId: 3, timeZoneId: "UTC" }, AbortSignal.timeout(5_000));
  const { id } = await rig.client.postSource(
    { name: "S", siteId, serialNumber: name, sourceTypeId: 72 },
    AbortSignal.timeout(5_000),
  );
  await rig.client.postVariable(
    { name: "V", sourceId: id, variableTypeId: 0, unitId: 8, mappingConfig: "x y" },
    AbortSignal.timeout(5_000),
  );
  const cell = `"${name.replaceAll('"', '""')}"`;
  const rows = Array.from({ length: 6 }, (_, at) => `${cell},x y,${day(at + 1)},${at}\n`);
  rig.put("in/odd.csv", `source_serial_number,mapping_config,date,value\n${rows.join("")}`);
  const gateway = await rig.open({
    push: { batch: { points: 2 }, confirm: { by: "read-back", pollEvery: "50ms" } },
  });
  await until("the gateway is idle", () => gateway.isIdle());
  const fields = { sourceSerialNumber: name, mappingConfig: "x y" };
  const query = { fields, atMs: Date.parse(day(6)) };
  expect(await Array.fromAsync(findReadings(join(rig.folder, "state/spool"), query))).toMatchObject([
    { row: 7, value: 5, sequence: "3" },
  ]);
  const { stdout } = await headgate("trace", "--target", targetWords(fields), "--date", day(6), "--json");
  expect(JSON.parse(stdout)).toMatchObject([{ row: 7 }]);
});

it("names the operation that the reading went with after its batch was split, and split again", async () => {
  await rig.close();
  rig = await GatewayRig.start({ limits: { body: "120B" } });
  const one = await rig.variable("one");
  const rows = Array.from({ length: 8 }, (_, at) => `${one},${day(at + 1)},${at}\n`);
  rig.put("in/large.csv", `variable_id,date,value\n${rows.join("")}`);
  const gateway = await rig.open({});
  await until("the gateway is idle", () => gateway.isIdle());
  expect(await rig.stored(one)).toMatchObject({ "2026-03-01": 0, "2026-03-08": 7 });
  const batches = await gateway.ledger.batches((await gateway.ledger.recentRuns(1))[0]?.id ?? "");
  const leaves = batches.filter(({ state }) => state !== "split");
  expect(leaves.map(({ points }) => points)).toEqual([2, 2, 2, 2]);
  for (const number of [1, 2, 3, 6, 8]) {
    const target = ["--target", `variableId=${one}`, "--date", day(number)];
    const { stdout } = await headgate("trace", ...target, "--json");
    const { operationId } = leaves[Math.floor((number - 1) / 2)] ?? {};
    expect(JSON.parse(stdout)).toMatchObject([{ row: number + 1, operationId }]);
  }
});

function headgate(...args: string[]) {
  return run(process.execPath, [main, ...args, "-c", join(rig.folder, "gateway.yaml")], { cwd: rig.folder });
}
