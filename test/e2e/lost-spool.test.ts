/**
 * A spool that was harmed while no gateway ran: what was mapped is made again with the same bytes, and
 * delivered once.
 */
import { readdir, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { Rig } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

async function tear(spool: string): Promise<void> {
  const segments = join(spool, "segments");
  const names = (await readdir(segments)).filter((name) => name.endsWith(".segment"));
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const { size } = await stat(join(segments, name));
    // Within its batches, whatever stands behind them.
    await truncate(join(segments, name), Math.floor(size / 2));
  }
}

test.each([
  { harm: "torn", act: tear, said: "a segment is damaged" },
  {
    harm: "vanished",
    act: (spool: string) => rm(spool, { recursive: true }),
    said: "the spool lost 2 segments, which are made again with equal bytes",
  },
])("a spool that is $harm costs nothing: every batch is sent with its former bytes", async ({ harm, act, said }) => {
  const stage = await rig.stage(harm);
  const expected = await Promise.all(
    ["one", "two"].map(async (name) => readingsOf(await rig.variable(`${harm}-${name}`), 100)),
  );
  await stage.put("standard_one.csv", expected[0]?.csv ?? "");
  await stage.put("standard_two.csv", expected[1]?.csv ?? "");
  // The service stores what comes first, and no answer gets through.
  stage.lane.interfere = () => "lost";
  const daemon = stage.gateway([]);
  await daemon.said("stderr", /gateway started/);
  await until("a push of each file", async () =>
    stage.inspect(async (ledger) => (await ledger.runsIn(["delivering"])).length === 2 && stage.lane.pushes.length > 1),
  );
  await daemon.end("SIGKILL");
  await act(join(stage.folder, "state/spool"));
  stage.lane.interfere = () => "pass";
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(said);
  expect(stage.lane.conflicts).toEqual([]);
  await expectStoredOnce(rig, expected);
});

test("a segment from before a crash whose file vanished is not kept as if it had been sent", async () => {
  const stage = await rig.stage("vanished-files");
  const { csv } = readingsOf(await rig.variable("vanished-files"), 3);
  for (const name of ["one", "two", "three", "four"]) await stage.put(`standard_${name}.csv`, csv);
  expect((await stage.untilIdle("run.map.segment")).signal).toBe("SIGKILL");
  const spool = join(stage.folder, "state/spool");
  expect((await stage.files(join(spool, "segments"))).filter((name) => name.endsWith(".segment"))).toHaveLength(4);
  for (const name of await stage.files()) await rm(join(stage.drop, name));
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  const states = await stage.inspect(async (ledger) => (await ledger.recentRuns(9)).map(({ state }) => state));
  expect(states).toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
  expect(await stage.files(join(spool, "segments"))).toEqual([]);
  expect(await stage.files(join(spool, "kept"))).toEqual(
    expect.not.arrayContaining([expect.stringContaining("segment")]),
  );
});
