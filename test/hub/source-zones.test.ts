/** The zones of sources, as files whose dates have none need them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const SECOND = { as: "second", account: 2 };
const zones = () => hub.inside().store.zones;

test("a source has its own zone, or else that of its site", async () => {
  const site = await createChain(hub, { source: { serialNumber: "Z-1" }, variables: [{ mappingConfig: "kWh" }] });
  const own = await createChain(hub, { source: { ean: "54", timeZoneId: "Eastern Standard Time" }, variables: [] });
  await createChain(hub, { source: { serialNumber: "theirs" }, variables: [{}], more: SECOND });
  const sources = await zones().sources(1, 0, 10);
  expect(sources).toMatchObject([
    { id: site.sourceId, serialNumber: "Z-1", ean: null, meterNumber: null, zone: "Europe/Paris" },
    { id: own.sourceId, serialNumber: null, ean: "54", zone: "America/New_York" },
  ]);
  expect(await zones().sources(1, 0, 1)).toEqual(sources.slice(0, 1));
  expect(await zones().sources(1, site.sourceId, 10)).toEqual(sources.slice(1));
  const [id] = site.variableIds;
  expect(await zones().variables(1, 0, 10)).toEqual([{ id, sourceId: site.sourceId }]);
  expect(await zones().variables(1, Number(id), 10)).toEqual([]);
});

test("each change of the structure makes another version for its account alone", async () => {
  const seen = new Set<number>();
  const other = await zones().version(2);
  const changed = async () => {
    const version = await zones().version(1);
    expect([...seen]).not.toContain(version);
    seen.add(version);
    expect(await zones().version(1)).toBe(version);
  };
  await changed();
  const { siteId, sourceId, variableIds } = await createChain(hub, { variables: [{ mappingConfig: "kWh" }] });
  await changed();
  await hub.ok("PATCH", `/sites/${siteId}`, { body: { timeZoneId: "America/New_York" } });
  await changed();
  expect(await zones().sources(1, sourceId - 1, 1)).toMatchObject([{ zone: "America/New_York" }]);
  await hub.ok("PATCH", `/sources/${sourceId}`, { body: { timeZoneId: "Asia/Tokyo" } });
  await changed();
  await hub.ok("DELETE", `/sources/${sourceId}/variables/${variableIds[0]}`);
  await changed();
  expect(await zones().version(2)).toBe(other);
});
