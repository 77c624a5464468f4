/** A service that takes pushes and cannot be asked what it stored, until after `confirm.within`. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { quickPush, Rig } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

test("an unknown outcome is shown in every report, also after a kill, and confirmed after the outage", async () => {
  const stage = await rig.stage("away", {
    operations: { listen: "127.0.0.1:0" },
    push: { ...quickPush, confirm: { pollEvery: "100ms", within: "1s" } },
  });
  stage.lane.baseIsAway = true;
  const readings = readingsOf(await rig.variable("away"), 30);
  await stage.put("unguarded_one.csv", readings.csv);
  for (const point of ["ledger.run.unconfirmed.before", "ledger.run.unconfirmed.after"])
    expect((await stage.untilIdle(point)).signal, point).toBe("SIGKILL");
  const sent = stage.lane.pushes.length;

  const away = await stage.untilIdle();
  expect(away.code, away.stderr).toBe(1);
  expect(away.stderr).toContain("unguarded_one.csv at field is unconfirmed");
  expect(JSON.parse(away.stdout).files).toEqual({ unconfirmed: 1 });
  for (const command of [["quarantine"], ["runs"], ["runs", "--waiting"], ["trace", "unguarded_one.csv"]]) {
    const told = await rig.start([...command, "-c", stage.config]).ended();
    expect(told.stdout, command.join(" ")).toContain("unconfirmed");
  }

  stage.lane.baseIsAway = false;
  const back = await stage.untilIdle();
  expect(back.code, back.stderr).toBe(0);
  await stage.inspect(async (ledger) =>
    expect((await ledger.recentRuns(1))[0]).toMatchObject({ state: "confirmed", points: { stored: 30 } }),
  );
  expect(stage.lane.pushes).toHaveLength(sent);
  await expectStoredOnce(rig, [readings]);
});
