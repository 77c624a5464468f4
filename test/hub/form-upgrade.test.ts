/** A store that was written before there were forms. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningHub, startHub } from "../../src/hub/hub.ts";
import { hubOptions } from "../../src/hub/options.ts";
import { silentLog as log } from "../../src/support/log.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { callsOf, type HubCalls, rawOptions, temporaryDirectory } from "./fixture.ts";
import { writeOldStore } from "./old-store.ts";

const VALUES = { contract: { Main: { POWER: "36" } }, Free: 1 };
const ROWS = [
  "INSERT INTO account (id, name) VALUES (1, 'First')",
  "INSERT INTO site (account_id, name, type_id, time_zone_id) VALUES (1, 'Old site', 3, 'UTC')",
  `INSERT INTO source (account_id, site_id, name, source_type_id, tags, client_data)
    VALUES (1, 1, 'Old source', 1, '[]', '${JSON.stringify(VALUES)}')`,
];

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let running: RunningHub;
let hub: HubCalls;
beforeAll(async () => {
  directory = await temporaryDirectory();
  await writeOldStore(directory.path, "forms", ROWS);
  running = await startHub(hubOptions.parse(rawOptions(directory.path)), { log, hashCost });
  hub = callsOf(() => running.url);
});
afterAll(async () => {
  await running.close();
  await directory.remove();
});

test("keeps its values, and a form takes them up", async () => {
  const [source] = await hub.get("/sources", { DisplayLevel: "Site" });
  expect(source).toMatchObject({
    name: "Old source",
    clientData: VALUES,
    site: { name: "Old site", clientData: null },
  });
  const CustomFilter = '"contract"."Main"."POWER" = \'36\'';
  expect(await hub.get("/sources", { CustomFilter })).toHaveLength(1);
  const fields = [{ name: "Power", type: "Number" }];
  await hub.post("/form", { name: "Contract", groups: [{ name: "Main", fields }] });
  expect((await hub.get(`/sources/${source.id}`)).clientData).toEqual({ Contract: { Main: { Power: 36 } }, Free: 1 });
  expect(await hub.get("/sources", { CustomFilter: '"Contract"."Main"."Power" > 35.5' })).toHaveLength(1);
});
