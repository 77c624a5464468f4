/** A file with more rows of master data than one file may have. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlatformRig, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

test("is refused in the row behind the last", async () => {
  const rows = Array.from({ length: 200_001 }, (_, at) => `Site ${at};3;UTC`);
  const id = await rig.store("many.csv", `site_name;site_type;site_time_zone\n${rows.join("\n")}\n`);
  const { body } = await rig.call("POST", `/storage/${id}/dryRun`, { query: { Result: "refused" } });
  expect(body.items).toMatchObject([
    { row: 200_002, reasons: [{ message: expect.stringContaining("more than 200000 rows") }] },
  ]);
});
