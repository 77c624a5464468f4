/** What a migration makes of tags, and of files that came, changed or stayed since it was called before. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { captureShown } from "../cli/shown.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { migrateHere, versionsOf } from "./migrate-command.ts";

let rig: GatewayRig;
const shown = captureShown();
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
});
afterEach(() => rig.close());

it("stamps readings without a version, and replaces those with the same tag", async () => {
  const id = await rig.variable("a", true);
  const rows = (value: number) =>
    `variable_id,date,value,version,tags
${id},2025-01-01T00:00:00Z,${value},,quality:measured
${id},2025-01-01T00:00:00Z,${value + 1},revised,quality:corrected
${id},2025-01-02T00:00:00Z,${value + 2},,
`;
  rig.put("history/a.csv", rows(10));
  const planned = await migrateHere(rig, shown, "--version-tag", "from archive", "--dry-run");
  expect(planned.stdout).toContain(
    "carry the tag from archive; readings stored with this tag at their dates are replaced",
  );
  expect(planned.code).toBe(0);
  expect((await migrateHere(rig, shown, "--version-tag", "from archive")).code).toBe(0);
  rig.put("history/a.csv", rows(20), new Date("2026-04-01T00:00:00Z"));
  const again = await migrateHere(rig, shown, "--version-tag", "from archive", "--on-change", "again", "--verify");
  expect(again.stdout).toContain("no difference");
  expect(await versionsOf(rig, id, "from archive")).toMatchObject([
    {
      rawValue: 20,
      date: expect.stringContaining("2025-01-01"),
      tags: { quality: "measured", version: "from archive" },
    },
    { rawValue: 22, date: expect.stringContaining("2025-01-02"), tags: { version: "from archive" } },
  ]);
  expect(await versionsOf(rig, id, "revised")).toMatchObject([
    { rawValue: 21, tags: { quality: "corrected", version: "revised" } },
  ]);
  expect(await versionsOf(rig, id)).toHaveLength(3);
});

it("processes new files, leaves delivered ones, and treats changed ones as configured", async () => {
  const id = await rig.variable("a");
  const file = (name: string, day: number, value: number, at?: Date) =>
    rig.put(`history/${name}.csv`, `variable_id,date,value\n${id},2025-01-0${day}T00:00:00Z,${value}\n`, at);
  file("one", 1, 1);
  file("two", 2, 2);
  expect((await migrateHere(rig, shown)).code).toBe(0);
  file("two", 2, 20, new Date("2026-04-01T00:00:00Z"));
  file("three", 3, 3);

  const stopped = await migrateHere(rig, shown);
  expect(stopped).toMatchObject({ code: 2, stderr: expect.stringContaining("two.csv") });
  expect(stopped.stderr).toContain("--on-change again");
  // A migration ends when its pushes are accepted, and the hub stores them then.
  await expect.poll(() => rig.stored(id)).toEqual({ "2025-01-01": 1, "2025-01-02": 2 });

  const skipped = await migrateHere(rig, shown, "--on-change", "skip", "--json");
  expect(skipped.stderr).toContain("3 files, ");
  expect(skipped.stderr).toContain("; 1 were delivered before; 1 changed since they were delivered");
  expect(JSON.parse(skipped.stdout)).toMatchObject({ points: { mapped: 3, accepted: 3 } });
  await expect.poll(() => rig.stored(id)).toEqual({ "2025-01-01": 1, "2025-01-02": 2, "2025-01-03": 3 });

  const again = await migrateHere(rig, shown, "--on-change", "again", "--json");
  // The files that there are count, and none twice.
  expect(JSON.parse(again.stdout)).toMatchObject({ files: { delivered: 3 }, points: { mapped: 3, accepted: 3 } });
  await expect.poll(() => rig.stored(id)).toEqual({ "2025-01-01": 1, "2025-01-02": 20, "2025-01-03": 3 });
});
