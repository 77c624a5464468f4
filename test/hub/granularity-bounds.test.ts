/** The largest spacing that a variable may declare: reads of it answer, and a greater one is refused where it comes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { provisionTemplate } from "#gateway/provisioning/options.ts";
import { findColumn } from "#mapping/readers/master-data/columns.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const LARGEST = [1_000_000, 1_000_000, 1_000_000, 36_525, 5_218, 1_200, 100].map((most, at) => [at + 1, most] as const);
const DATES = ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"];

test.each(LARGEST)("of the time period %i is %i", async (base, most) => {
  const declared = { granularity: most, granularityTimeBase: base };
  const { sourceId, variableIds } = await createChain(hub, { variables: [declared] });
  const [id = 0] = variableIds;
  await hub.push([{ variableId: id, data: DATES.map((date) => ({ date, value: 1 })) }]);
  const far = { FlatLinePoints: Number.MAX_SAFE_INTEGER, FlatLineHours: Number.MAX_SAFE_INTEGER };
  for (const [path, more] of [
    ["/dataQuality", far],
    ["/dataLossDetection", {}],
  ] as const) {
    const query = { VariableIds: id, ...more };
    expect(await hub.call("GET", path, { query })).toMatchObject({ status: 200, body: [{ variableId: id }] });
  }
  const body = { name: "More", sourceId, variableTypeId: 0, unitId: 8, granularityTimeBase: base };
  for (const granularity of [most + 1, Number.MAX_SAFE_INTEGER]) {
    const answers = [
      await hub.call("POST", "/variables", { body: { ...body, granularity } }),
      await hub.call("PATCH", `/variables/${id}`, { body: { granularity } }),
      await hub.call("PUT", `/variables/${id}`, { body: { granularity } }),
    ];
    for (const { status, body: problem } of answers)
      expect([status, problem.detail]).toEqual([400, expect.stringMatching(/^granularity.*\d/)]);
  }
});

test("of years holds in the table of master data, in a template, and by a change of the time period", async () => {
  const { variableIds } = await createChain(hub, { variables: [{ granularity: 101, granularityTimeBase: 6 }] });
  const changed = await hub.call("PATCH", `/variables/${variableIds[0]}`, { body: { granularityTimeBase: "Year" } });
  expect([changed.status, changed.body.detail]).toEqual([400, expect.stringContaining("at most 100")]);
  const read = (cell: string) => findColumn("granularity")?.read(cell, "listed");
  expect(() => read("101 years")).toThrow("at most 100");
  expect(read("1200 Months")).toEqual({ granularity: 1_200, granularityTimeBase: 6 });
  const variable = (granularity: string) => ({ variable: { granularity } });
  const issues = (granularity: string) =>
    provisionTemplate.safeParse(variable(granularity)).error?.issues.filter(({ path }) => path.includes("granularity"));
  expect(issues("101 years")).toMatchObject([{ message: expect.stringContaining("at most 100") }]);
  expect(issues("100 years") ?? []).toEqual([]);
});
