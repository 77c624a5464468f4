import { afterAll, beforeAll, expect } from "vitest";
import { type DataRow, dataRows } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATE = "2026-03-01T00:00:00Z";
async function made(isVersioned: boolean): Promise<number> {
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned }] });
  return variableIds[0] ?? 0;
}
const push = (variableId: number, value: number, reading: object = {}, element: object = {}) =>
  hub.push([{ variableId, ...element, data: [{ date: DATE, value, ...reading }] }]);
const read = async (VariableId: number, query: Query = {}): Promise<DataRow[]> =>
  dataRows.parse(await hub.get("/data", { VariableId, ...query }));
const history = async (id: number) =>
  (await read(id, { AllVersions: true })).map((row) => `${row.version ?? "-"}=${row.rawValue}`);

rule("versions.overwrite", async () => {
  const { variableIds } = await createChain(hub);
  const id = variableIds[0] ?? 0;
  await push(id, 1);
  await push(id, 2);
  expect(await history(id)).toEqual(["-=2"]);
});
rule("versions.beside", async () => {
  const id = await made(true);
  await push(id, 1, { tags: { note: "first" } });
  const [before] = await read(id, { AllVersions: true });
  await push(id, 2);
  const rows = await read(id, { AllVersions: true });
  expect(rows[0]).toEqual(before);
  expect(rows[0]).toMatchObject({ rawValue: 1, tags: { note: "first" } });
  expect(await history(id)).toEqual(["-=1", "-=2"]);
});
rule("versions.timestamp", async () => {
  const id = await made(true);
  for (const value of [5, 4, 3]) await push(id, value);
  const rows = await read(id, { AllVersions: true });
  const stamps = rows.map((row) => row.versionTimestamp ?? "");
  expect(stamps).toEqual([...new Set(stamps)].sort());
  expect(await read(id)).toMatchObject([{ rawValue: 3 }]);
});
rule("versions.tag", async () => {
  const id = await made(true);
  await push(id, 1, { version: "z" });
  await push(id, 2, { version: "a" });
  expect(await read(id)).toMatchObject([{ rawValue: 2 }]);
  await hub.push([{ variableId: id, data: [{ date: "2026-03-02T00:00:00Z", value: 3, version: "z" }] }]);
  expect((await read(id, { VersionTag: "z" })).map((row) => row.rawValue)).toEqual([1, 3]);
});
rule("versions.business-time", async () => {
  const id = await made(true);
  const dates = ["2026-03-05T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z"];
  for (const date of dates) await hub.push([{ variableId: id, data: [{ date, value: 1 }] }]);
  const rows = await read(id, { DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC" });
  expect(rows.map((row) => row.date?.slice(0, 10))).toEqual(["2026-03-01", "2026-03-03", "2026-03-05"]);
});
rule("versions.labels", async () => {
  const id = await made(true);
  const tags = { operator: "M. Dupont", "any name": "any text" };
  await push(id, 1, { tags });
  expect(await read(id, { AllVersions: true })).toMatchObject([{ tags }]);
});
rule("versions.tag-unknown", async () => {
  const id = await made(true);
  expect(await push(id, 1, { version: "never seen before" })).toMatchObject({ stored: 1 });
  expect(await read(id, { AllVersions: true })).toMatchObject([
    { version: "never seen before", tags: { version: "never seen before" } },
  ]);
});
rule("versions.tag-again", async () => {
  const id = await made(true);
  await push(id, 1, { version: "draft" });
  await push(id, 2, { version: "final" });
  await push(id, 3, { version: "draft" });
  expect((await history(id)).sort()).toEqual(["draft=3", "final=2"]);
});
rule("versions.untagged", async () => {
  const id = await made(true);
  for (let value = 1; value <= 9; value += 1) await push(id, value);
  expect(await history(id)).toEqual([3, 4, 5, 6, 7, 8, 9].map((value) => `-=${value}`));
});
rule("versions.off", async () => {
  const id = await made(false);
  await push(id, 1, { version: "a" });
  await push(id, 2, { version: "b" });
  expect(await history(id)).toEqual(["b=2"]);
});
rule("versions.retention", async () => {
  const id = await made(true);
  for (let value = 1; value <= 8; value += 1) await push(id, value, { version: `v${value}` });
  expect(await history(id)).not.toContain("v1=1");
  expect(await history(id)).toContain("v2=2");
});
rule("versions.purging", async () => {
  const id = await made(true);
  await push(id, 0, { version: "tagged" });
  for (let value = 1; value <= 8; value += 1) await push(id, value);
  const rows = await history(id);
  expect(rows).toContain("tagged=0");
  expect(rows.filter((row) => row.startsWith("-"))).toHaveLength(7);
});
rule("versions.levels", async () => {
  const id = await made(true);
  await push(id, 1, { tags: { own: "1", both: "reading" } }, { tags: { batch: "2", both: "element" } });
  const [row] = await read(id, { AllVersions: true });
  expect(row).toMatchObject({
    tags: { own: "1", batch: "2", both: "reading" },
    batchTags: { batch: "2", both: "element" },
  });
  await push(id, 2, { version: "own" }, { version: "all" });
  expect(await history(id)).toContain("own=2");
});
rule("versions.latest", async () => {
  const id = await made(true);
  await push(id, 1, { version: "b" });
  await push(id, 2, { version: "a" });
  expect(await read(id)).toEqual([{ rawValue: 2, unitId: 8 }]);
});
rule("versions.as-of", async () => {
  const id = await made(true);
  await push(id, 1);
  await push(id, 2);
  const [first, second] = await read(id, { AllVersions: true });
  const asOf = async (moment: string | undefined) =>
    (await read(id, { AsOf: moment ?? "" })).map((row) => row.rawValue);
  expect(await asOf(first?.versionTimestamp)).toEqual([1]);
  expect(await asOf(second?.versionTimestamp)).toEqual([2]);
  expect(await asOf("2020-01-01T00:00:00Z")).toEqual([]);
});
rule("versions.by-tag", async () => {
  const id = await made(true);
  await push(id, 1, { version: "frozen" });
  await push(id, 2);
  expect(await read(id, { VersionTag: "frozen" })).toMatchObject([{ rawValue: 1, version: "frozen" }]);
});
rule("limits.versions", async () => {
  const id = await made(true);
  await hub.push([{ variableId: id, data: Array.from({ length: 10 }, (_, value) => ({ date: DATE, value })) }]);
  expect(await history(id)).toHaveLength(7);
});
rule("limits.versions-configured", async () => {
  const other = await startTestHub({
    limits: { versions: 3 },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { versions: 2 } },
    ],
  });
  try {
    const second = { as: "second", account: 2 };
    const kept = async (variable: object, more: object) => {
      const { variableIds } = await createChain(other, {
        variables: [{ isVersioned: true, ...variable }],
        more,
      });
      const data = [1, 2, 3, 4, 5, 6].map((value) => ({ date: DATE, value }));
      await other.push([{ variableId: variableIds[0], data }], more);
      return (await other.get("/data", { VariableIds: variableIds, AllVersions: true }, more)).length;
    };
    expect(await kept({}, {})).toBe(3);
    expect(await kept({}, second)).toBe(2);
    expect(await kept({ versionsMax: 4 }, second)).toBe(4);
    expect(await kept({ versionsMax: 1 }, {})).toBe(1);
  } finally {
    await other.close();
  }
});
