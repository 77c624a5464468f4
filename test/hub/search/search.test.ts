/** GET /search (`docs/hub/structure.md`, *Search*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
let siteId: number;
beforeAll(async () => {
  hub = await startTestHub();
  const source = {
    name: "Hôtel meter",
    serialNumber: "MTR-0042",
    ean: "541448800000000042",
    meterNumber: "WM 77",
    tags: ["Basement"],
  };
  const made = await createChain(hub, { source, variables: [{ name: "Active energy", mappingConfig: "A+" }] });
  siteId = made.siteId;
  await hub.ok("PATCH", `/sites/${siteId}`, { body: { name: "Town hall", city: "Brussels" } });
  await createChain(hub, {
    source: { name: "Other", serialNumber: "MTR-00421" },
    variables: [{ name: "Flow", unitId: 1 }],
  });
});
afterAll(() => hub.close());

const search = async (text: string, more = {}) => {
  const found = await hub.get("/search", { SearchText: text, ...more });
  return found.map(({ entity, name }: { entity: string; name: string }) => `${entity} ${name}`);
};
const METER = ["Source Hôtel meter", "Variable Active energy"];

describe("a search", () => {
  test.each([
    ["a serial number, and what goes on after it", "mtr-0042", [METER[0], "Source Other", METER[1], "Variable Flow"]],
    ["a part of a serial number", "00421", ["Source Other", "Variable Flow"]],
    ["an EAN", "541448800000000042", METER],
    ["a meter number", "wm 77", METER],
    ["a tag in another case", "BASEMENT", METER],
    ["a name without its accent", "hotel", METER],
    ["a unit, by its symbol", "0042 kwh", ["Variable Active energy"]],
    ["a unit, by its name", "watt", ["Variable Flow"]],
    ["words of a site and of what is below it", "town energy", ["Variable Active energy"]],
    ["an address", "brussels", ["Site Town hall"]],
    ["signs of a query language", `"town" OR ' ) & | :*`, []],
    ["nothing but signs", "'\"*", []],
    ["what nobody has", "town nowhere", []],
  ])("finds by %s", async (_, text, expected) => {
    expect(await search(text)).toEqual(expected);
  });

  test("knows changes and removals at once", async () => {
    const made = await createChain(hub, { source: { name: "Passing", serialNumber: "P-1" } });
    expect(await search("passing")).toEqual(["Source Passing", "Variable Energy"]);
    await hub.ok("PATCH", `/sources/${made.sourceId}`, { body: { serialNumber: "renumbered" } });
    await hub.ok("PATCH", `/sites/${made.siteId}`, { body: { name: "Moved" } });
    expect(await search("p-1")).toEqual([]);
    expect(await search("renumbered")).toEqual(["Source Passing", "Variable Energy"]);
    expect(await search("moved")).toEqual(["Site Moved", "Source Passing", "Variable Energy"]);
    await hub.ok("DELETE", `/sites/${made.siteId}`);
    expect(await search("moved")).toEqual([]);
  });

  test("shows no more than asked for, whole words first, and nothing of another account", async () => {
    expect(await search("mtr", { "Paging.ItemsPerPage": 1 })).toEqual(["Source Hôtel meter"]);
    const whole = await createChain(hub, { source: { name: "Late", serialNumber: "MTR-004" } });
    expect(await search("mtr-004", { "Paging.ItemsPerPage": 1 })).toEqual(["Source Late"]);
    await hub.ok("DELETE", `/sites/${whole.siteId}`);
    expect(await hub.get("/search", { SearchText: "mtr" }, { as: "second", account: 2 })).toEqual([]);
    expect((await hub.call("GET", "/search")).status).toBe(400);
    const tooMany = await hub.call("GET", "/search", { query: { SearchText: "x", "Paging.ItemsPerPage": 201 } });
    expect(tooMany.status).toBe(400);
  });
});
