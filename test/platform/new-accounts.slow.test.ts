/** An account that came while the hub runs, as by another hub of the database. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { HubStore } from "../../src/hub/store/store.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

test("files of an account that came after the start are processed by its triggers", async () => {
  const store = rig.platform().inside.store as HubStore;
  await store.identity.putAccount({ id: 3, name: "Third" });
  const by = { as: "admin", account: 3 };
  const variableId = await rig.variable("K-3", by);
  await rig.trigger("new_", "standard", {}, by);
  const id = await rig.store("new_1.csv", standardCsv("K-3", "2026-03-01T00:00:00Z", 7), by);
  await rig.became(id, "stored", by);
  expect(Object.values(await rig.values(variableId, by))).toEqual([7]);
  // The other accounts go on.
  await rig.trigger("old_", "standard");
  await rig.variable("K-1");
  await rig.became(await rig.store("old_1.csv", standardCsv("K-1", "2026-03-01T00:00:00Z", 8)), "stored");
});
