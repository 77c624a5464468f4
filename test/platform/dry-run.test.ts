/** A dry run of master data reads a snapshot of the SQLite store, whose only writer others need. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdWriter } from "../hub/fixture.ts";
import { type PlatformRig, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

test("a dry run waits for no writer, and holds none back", async () => {
  const id = await rig.store("held.csv", "site_name;site_type;site_time_zone\nHeld;Office;Europe/Brussels\n");
  expect((await rig.call("POST", `/storage/${id}/dryRun`)).status).toBe(200);
  const { released } = await holdWriter(rig.directory, 5_000);
  const ended: string[] = [];
  const held = released.then(() => ended.push("writer"));
  const { status, body } = await rig.call("POST", `/storage/${id}/dryRun`);
  ended.push("dry run");
  await held;
  expect([status, body.rows, ended]).toMatchObject([200, { created: 1 }, ["dry run", "writer"]]);
});
