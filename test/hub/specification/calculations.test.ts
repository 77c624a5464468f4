/** Rules about when variables are calculated, and about versions, with expressions; those of scripts are beside. */
import { afterAll, beforeAll, expect } from "vitest";
import { defaultVersionOf } from "#hub/calculated/recalculation/order.ts";
import {
  calculate,
  calculationsOf,
  openScene,
  pushValues,
  untilCalculated,
  valuesOf,
  versionsOf,
} from "../calculated/scene.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATE = "2026-03-01T10:00:00Z";
const VERSIONED = { variable: { isVersioned: true } };
/** Its outputs carry the versions of the input, where clients gave them. */
const TWICE = "= a * 2";

async function openOne(formula: string, more: Parameters<typeof calculate>[4] = {}) {
  const scene = await openScene(hub, 1, { isVersioned: true });
  const [input = 0] = scene.inputs;
  const id = await calculate(hub, scene, formula, { a: input }, more);
  await untilCalculated(hub);
  return { ...scene, input, id };
}

async function pushVersion(variableId: number, version: string, value: number): Promise<void> {
  await hub.push([{ variableId, data: [{ date: DATE, value, version }] }]);
  await untilCalculated(hub);
}

rule("calculated.recalculation", async () => {
  const { input, id } = await openOne("= a * 10");
  await pushValues(hub, input, { [DATE]: 1 });
  await untilCalculated(hub);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 10 });
  const before = (await calculationsOf(hub, id)).length;
  await hub.post("/events/forceUpdate", { VariableIds: [id] });
  await untilCalculated(hub);
  expect((await calculationsOf(hub, id)).length).toBe(before + 1);
  const asPlain = { as: "plain", body: { VariableIds: [id] } };
  expect((await hub.call("POST", "/events/forceUpdate", asPlain)).status).toBe(403);
});

rule("calculated.inputs", async () => {
  const { input, id } = await openOne("= a * 10");
  await pushVersion(input, "first", 1);
  await pushVersion(input, "second", 2);
  // The latest version of the input is that of the newest push, also of an older tag.
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 20 });
  await pushVersion(input, "first", 3);
  expect(await valuesOf(hub, id)).toEqual({ [DATE]: 30 });
});

rule("calculated.coexist", async () => {
  const versioned = await openOne(TWICE, VERSIONED);
  await pushVersion(versioned.input, "A", 1);
  await pushVersion(versioned.input, "B", 2);
  await pushVersion(versioned.input, "A", 3);
  expect((await versionsOf(hub, versioned.id)).toSorted()).toEqual([
    ["A", 6],
    ["B", 4],
  ]);
  const plain = await openOne(TWICE);
  await pushVersion(plain.input, "A", 1);
  await pushVersion(plain.input, "B", 2);
  // Without versions the second overwrites the first, and its version is a label.
  expect(await versionsOf(hub, plain.id)).toEqual([["B", 4]]);
});

rule("calculated.default-version", async () => {
  const { input, id } = await openOne("= a * 10", VERSIONED);
  const before = defaultVersionOf(Temporal.Now.instant());
  for (const value of [1, 2]) {
    await pushValues(hub, input, { [DATE]: value });
    await untilCalculated(hub);
  }
  const after = defaultVersionOf(Temporal.Now.instant());
  const given = (await calculationsOf(hub, id)).slice(-2).map(({ defaultVersion }) => defaultVersion);
  for (const version of given) expect([before, after]).toContain(version);
  // Calculations of one hour overwrite each other: there are as many versions as hours.
  const found = await versionsOf(hub, id);
  expect(found.map(([version]) => version)).toEqual([...new Set(given)]);
  expect(found.at(-1)?.[1]).toBe(20);
});
