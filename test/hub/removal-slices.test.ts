/** What is much is removed in slices, between which others write. */
import { afterAll, beforeEach, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

const VARIABLES = 1_000;
/** As the store has it. */
const SLICE = 300;
const OTHER = 2;
const VARIABLE = { variableTypeId: 0, unitId: 8 } as const;
const SITE = { name: "Site", typeId: 3, timeZoneId: "UTC" } as const;

let hub: TestHub;
let siteId: number;
let variableIds: number[];
beforeEach(async () => {
  hub ??= await startTestHub();
  const chain = await createChain(hub);
  siteId = chain.siteId;
  const made = Array.from({ length: VARIABLES }, (_, at) =>
    structure().createVariable(1, { ...VARIABLE, sourceId: chain.sourceId, name: `Energy ${at}` }),
  );
  variableIds = [...chain.variableIds, ...(await Promise.all(made)).map((id) => id ?? 0)].toSorted(
    (one, other) => one - other,
  );
});
afterAll(() => hub.close());

const structure = () => (hub.inside().store as HubStore).structure;
const left = async (): Promise<number[]> =>
  ((await hub.get("/variables")) as { id: number }[]).map(({ id }) => id).filter((id) => variableIds.includes(id));
const push = (variableId: number, date: string) => hub.push([{ variableId, data: [{ date, value: 1 }] }]);

test("another account writes between all slices, and the own account after the last one", async () => {
  const counts: number[] = [];
  let isRemoved = false;
  const removal = hub.call("DELETE", `/sites/${siteId}`).then((answer) => {
    isRemoved = true;
    return answer;
  });
  let own: Promise<number> | undefined;
  while (!isRemoved) {
    await structure().createSite(OTHER, SITE);
    counts.push((await structure().variables(1, { ids: variableIds }, { offset: 0, limit: 1 })).total);
    if (counts.at(-1) !== VARIABLES + 1)
      own ??= structure()
        .createSite(1, { ...SITE, name: "Own" })
        .then(async () => (await left()).length);
  }
  const { status, body } = await removal;
  expect([status, body]).toEqual([200, { removed: { site: siteId, sources: 1, variables: VARIABLES + 1, points: 0 } }]);
  expect(await own).toBe(0);
  const steps = counts.map((count, at) => (counts[at - 1] ?? VARIABLES + 1) - count);
  expect(Math.max(...steps)).toBeLessThanOrEqual(2 * (SLICE + 1));
  expect(new Set(counts).size).toBeGreaterThan(2);
});

test("a calculated variable elsewhere that reads one of many keeps all of them", async () => {
  const { sourceId } = await createChain(hub);
  const formulas = [{ formula: "a * 2", variables: [{ alias: "a", variableId: variableIds.at(-1) }] }];
  const calculated = { calculatedVariableFormulas: formulas };
  const reader = await hub.post("/variables", { name: "Twice", sourceId, variableTypeId: 0, unitId: 8, calculated });
  const { status, body } = await hub.call("DELETE", `/sites/${siteId}`);
  expect(status).toBe(409);
  expect(body.detail).toContain("Twice");
  expect(await left()).toHaveLength(VARIABLES + 1);
  expect((await hub.call("DELETE", `/variables/${reader}`)).status).toBe(200);
});

test("many with points are removed only with their data, and each has an event", async () => {
  const [first = 0, second = 0] = variableIds;
  await push(first, "2026-03-01T00:00:00Z");
  await push(second, "2026-03-01T00:00:00Z");
  await push(second, "2026-03-02T00:00:00Z");
  const refused = await hub.call("DELETE", `/sites/${siteId}`);
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    expect.stringContaining("holds 3 points in 2 variables"),
  ]);
  expect(await left()).toHaveLength(VARIABLES + 1);
  const { status, body } = await hub.call("DELETE", `/sites/${siteId}?WithData=true`);
  expect([status, body]).toEqual([200, { removed: { site: siteId, sources: 1, variables: VARIABLES + 1, points: 3 } }]);
  expect(await left()).toEqual([]);
  const events: { subject: { kind: string; id: string }; facts: unknown }[] = [];
  for (let after = 0, count = -1; count !== events.length; ) {
    count = events.length;
    const query = { types: "structure.changed", states: "removed", siteIds: siteId, limit: 1_000, after };
    const page = await hub.get("/events", query);
    events.push(...page.events);
    after = page.next;
  }
  const ids = (kind: string) =>
    events.filter(({ subject }) => subject.kind === kind).map(({ subject }) => Number(subject.id));
  expect(ids("variable").toSorted((one, other) => one - other)).toEqual(variableIds);
  expect([ids("source").length, ids("site")]).toEqual([1, [siteId]]);
  expect(events.at(-1)?.facts).toEqual({ sources: 1, variables: VARIABLES + 1, points: 0 });
});

test("points that come meanwhile stay, with what they are in, where the removal is without data", async () => {
  let isRemoved = false;
  const removal = hub.call("DELETE", `/sites/${siteId}`).then((answer) => {
    isRemoved = true;
    return answer;
  });
  let kept: number | undefined;
  while (!isRemoved && kept === undefined) {
    const ids = await left();
    if (ids.length < VARIABLES + 1) kept = ids.at(-1);
    if (kept !== undefined) await push(kept, "2026-03-01T00:00:00Z");
  }
  const { status, body } = await removal;
  expect([status, body.detail]).toEqual([409, expect.stringContaining("holds 1 points in 1 variables")]);
  expect(await left()).toContain(kept);
  // The account is free again.
  await hub.post("/sites", SITE);
});
