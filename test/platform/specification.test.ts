/** Rules of the specification about files that the hub processes itself. */
import { afterAll, beforeAll, expect } from "vitest";
import { rule } from "../hub/specification/rule.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

rule("silent.file", async () => {
  const variableId = await rig.variable("N-1");
  await rig.trigger("other_", "standard");
  const id = await rig.store("nobody_1.csv", standardCsv("N-1", DATE, 1));
  expect((await rig.became(id, "unclaimed"))["reason"]).toContain("no trigger claims it");
  expect(await rig.values(variableId)).toEqual({});
});
rule("trigger.missing-mapper", async () => {
  const triggerId = await rig.trigger("missing_", "no-such-mapper");
  expect(await rig.get(`/fileTrigger/${triggerId}`)).toMatchObject({ mapping: "no-such-mapper", mappingKnown: false });
  const id = await rig.store("missing_1.csv", "x");
  const file = await rig.became(id, "quarantined");
  expect(file).toMatchObject({ triggerId, reason: expect.stringContaining("no-such-mapper") });
});
rule("versions.standard-file", async () => {
  const variableId = await rig.variable("T-1");
  await rig.trigger("versions_", "standard");
  const lines = [
    "date,value,source_serial_number,mapping_config,version,tags",
    `${DATE},1,T-1,kWh,,`,
    `2026-03-02T00:00:00Z,2,T-1,kWh,Simulation,operator:M. Dupont|note:checked`,
  ];
  await rig.became(await rig.store("versions_1.csv", lines.join("\n")), "stored");
  const rows = await rig.get("/data", { VariableIds: variableId, AllVersions: true });
  expect(rows).toMatchObject([
    { rawValue: 1 },
    { rawValue: 2, version: "Simulation", tags: { operator: "M. Dupont", note: "checked" } },
  ]);
});
