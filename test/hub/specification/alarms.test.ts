import { afterAll, beforeAll, expect } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let variableId = 0;
beforeAll(async () => {
  hub = await startTestHub();
  [variableId = 0] = (await createChain(hub)).variableIds;
});
afterAll(() => hub.close());

const template = (name: string, severity: string): Promise<number> =>
  hub.post("/alarms/template", {
    name,
    severity,
    selection: { variableIds: [variableId] },
    condition: { kind: "Above", set: 10 },
  });
const names = async (path: string, query: Record<string, string | number | boolean>) =>
  (await hub.get(path, query)).map(({ name }: { name: string }) => name);

rule("alarms.templates", async () => {
  await template("Load", "Critical");
  await template("Noise", "Information");
  const critical = { name: "v", templateViews: true, filter: { severities: ["Critical"] } };
  const viewId = await hub.post("/alarms/view", critical);
  expect(await names("/alarms/template", {})).toEqual(["Load", "Noise"]);
  expect(await names("/alarms/template", { viewId })).toEqual(["Load"]);
  expect(await names("/alarms/template", { viewId, name: "noise" })).toEqual([]);
  const ofAlarms = await hub.post("/alarms/view", { name: "a", filter: { severities: ["Critical"] } });
  for (const wrong of [ofAlarms, 987_654])
    expect(await hub.call("GET", "/alarms/template", { query: { viewId: wrong } })).toMatchObject({ status: 400 });
});

rule("alarms.views", async () => {
  const ofAlarms = await hub.post("/alarms/view", { name: "Open", filter: { states: ["Present"] } });
  const ofTemplates = await hub.post("/alarms/view", { name: "Critical", templateViews: true, filter: {} });
  expect(await names("/alarms/views", {})).toContain("Open");
  expect(await names("/alarms/views", {})).not.toContain("Critical");
  expect(await names("/alarms/views", { templateViews: false })).not.toContain("Critical");
  expect(await names("/alarms/views", { templateViews: true })).toContain("Critical");
  expect(await names("/alarms/views", { templateViews: true })).not.toContain("Open");
  const remove = async (id: number, query: Record<string, boolean> = {}) =>
    (await hub.call("DELETE", `/alarms/view/${id}`, { query })).status;
  expect(await remove(ofTemplates)).toBe(404);
  expect(await remove(ofAlarms, { templateViews: true })).toBe(404);
  expect(await remove(ofTemplates, { templateViews: true })).toBe(204);
  expect(await remove(ofAlarms, { templateViews: false })).toBe(204);
  expect(await remove(ofAlarms)).toBe(404);
});
