import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DataRow, dataRows } from "#wire/index.ts";
import { createChain, type HubCalls, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATE = "2026-03-01T00:00:00Z";

async function versioned(isVersioned = true): Promise<number> {
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned }] });
  return variableIds[0] ?? 0;
}
const push = (variableId: number, value: number, version?: string, more: object = {}) =>
  hub.push([{ variableId, data: [{ date: DATE, value, ...(version === undefined ? {} : { version }) }], ...more }]);
const read = async (variableId: number, query: Query = {}): Promise<DataRow[]> =>
  dataRows.parse(await hub.get("/data", { VariableId: variableId, ...query }));
const history = (variableId: number) => read(variableId, { AllVersions: true });
const shown = (rows: DataRow[]) => rows.map((row) => `${row.version ?? "-"}=${row.rawValue}`);

describe("versioning off", () => {
  test("a new value overwrites and no history is kept; the version is only a label", async () => {
    const id = await versioned(false);
    await push(id, 1, "a");
    expect(await push(id, 2, "b")).toMatchObject({ stored: 1, replaced: 1 });
    expect(shown(await history(id))).toEqual(["b=2"]);
    expect(await history(id)).toMatchObject([{ tags: { version: "b" } }]);
  });
});

describe("versioning on", () => {
  test("each submission without tag is a new version; the latest is shown", async () => {
    const id = await versioned();
    await push(id, 1);
    expect(await push(id, 2)).toMatchObject({ stored: 1, replaced: 0 });
    expect(await read(id)).toMatchObject([{ rawValue: 2 }]);
    expect(shown(await history(id))).toEqual(["-=1", "-=2"]);
  });

  test("re-pushing a VersionTag replaces that tag's entry", async () => {
    const id = await versioned();
    await push(id, 1, "draft");
    await push(id, 2, "final");
    expect(await push(id, 3, "draft")).toMatchObject({ replaced: 1 });
    expect(shown(await history(id))).toEqual(["final=2", "draft=3"]);
    expect(await read(id)).toMatchObject([{ rawValue: 3 }]);
    expect(await read(id, { VersionTag: "final" })).toMatchObject([{ rawValue: 2, version: "final" }]);
    expect(await read(id, { VersionTag: "Final" })).toEqual([]);
  });

  test("VersionTimestamp increases strictly, also within one push, and AsOf reads the past", async () => {
    const id = await versioned();
    await hub.push([{ variableId: id, data: [1, 2, 3].map((value) => ({ date: DATE, value })) }]);
    const stamps = (await history(id)).map((row) => row.versionTimestamp ?? "");
    expect(stamps).toEqual([...new Set(stamps)].toSorted());
    expect(stamps).toHaveLength(3);
    for (const [index, stamp] of stamps.entries())
      expect(await read(id, { AsOf: stamp })).toMatchObject([{ rawValue: index + 1 }]);
    expect(await read(id, { AsOf: "2026-01-01T00:00:00Z" })).toEqual([]);
    expect(await hub.call("GET", "/data", { query: { VariableId: id, AsOf: "then" } })).toMatchObject({
      status: 400,
    });
  });

  test("VersionSince reads the points whose latest version is not older", async () => {
    const id = await versioned();
    const later = "2026-03-02T00:00:00Z";
    const both = [DATE, later].map((date) => ({ date, value: 1 }));
    await hub.push([{ variableId: id, data: both }]);
    await push(id, 2);
    const stamps = (await history(id)).map((row) => row.versionTimestamp ?? "").toSorted();
    const [first = "", , last = ""] = stamps;
    expect(await read(id, { VersionSince: first })).toMatchObject([{ rawValue: 2 }, { rawValue: 1 }]);
    expect(await read(id, { VersionSince: last })).toMatchObject([{ rawValue: 2, versionTimestamp: last }]);
    expect(await read(id, { VersionSince: "2100-01-01T00:00:00Z" })).toEqual([]);
    const sums = { Granularity: "All", Aggregation: "SUM", VersionSince: last };
    expect(await read(id, sums)).toMatchObject([{ sumValue: 2 }]);
    const query = { VariableId: id, VersionSince: last, AsOf: last };
    expect(await hub.call("GET", "/data", { query })).toMatchObject({ status: 400 });
  });

  test(
    "a VersionTag is copied into the point's tags; of the element's and the reading's the reading's " + "applies",
    async () => {
      const id = await versioned();
      await hub.push([
        {
          variableId: id,
          version: "element",
          data: [
            { date: DATE, value: 1 },
            { date: DATE, value: 2, version: "reading" },
          ],
        },
      ]);
      expect(await history(id)).toMatchObject([
        { version: "element", tags: { version: "element" } },
        { version: "reading", tags: { version: "reading" } },
      ]);
    },
  );

  test("tags of the element and of the reading are independent: neither replaces the other", async () => {
    const id = await versioned();
    const reading = { date: DATE, value: 1, tags: { quality: "good", by: "reading" } };
    await hub.push([{ variableId: id, tags: { origin: "file", by: "element" }, data: [reading] }]);
    expect(await history(id)).toMatchObject([
      {
        tags: { origin: "file", quality: "good", by: "reading" },
        batchTags: { origin: "file", by: "element" },
      },
    ]);
  });

  test("of each point the 7 newest tagged and the 7 newest untagged versions stay, purged separately", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(fc.integer({ min: 0, max: 11 }), { nil: undefined }), {
          minLength: 1,
          maxLength: 40,
        }),
        async (submissions) => {
          const id = await versioned();
          const data = submissions.map((tag, value) => ({
            date: DATE,
            value,
            ...(tag === undefined ? {} : { version: `t${tag}` }),
          }));
          await hub.push([{ variableId: id, data }]);
          const kept = data.filter(
            ({ version }, index) =>
              version === undefined || data.findLastIndex((one) => one.version === version) === index,
          );
          const newest = (tagged: boolean) =>
            kept.filter(({ version }) => (version !== undefined) === tagged).slice(-7);
          const expected = [...newest(true), ...newest(false)].toSorted((a, b) => a.value - b.value);
          expect(shown(await history(id))).toEqual(expected.map(({ version, value }) => `${version ?? "-"}=${value}`));
          expect(await read(id)).toMatchObject([{ rawValue: submissions.length - 1 }]);
        },
      ),
      { numRuns: 20 },
    );
  });

  test("pages count points, each with all its versions, and so does x-total-count", async () => {
    const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
    const data = ["01", "01", "02"].map((day, value) => ({ date: `2026-03-${day}T00:00:00Z`, value }));
    await hub.push([{ variableId: variableIds[0], data }]);
    const query = { VariableId: variableIds, AllVersions: true, IncludeItemsCount: true };
    const first = await hub.call("GET", "/data", { query: { ...query, "Paging.ItemsPerPage": 1 } });
    expect(first.headers.get("x-total-count")).toBe("2");
    expect(first.body.map((row: { rawValue: number }) => row.rawValue)).toEqual([0, 1]);
  });

  test("VersionTag, AsOf and AllVersions are refused together", async () => {
    const query = { VariableId: 1, VersionTag: "a", AllVersions: true };
    expect(await hub.call("GET", "/data", { query })).toMatchObject({ status: 400 });
  });
});

describe("how many versions are kept", () => {
  const submit = async (target: HubCalls, more: object, count: number) => {
    const { variableIds } = await createChain(target, { variables: [{ isVersioned: true, ...more }] });
    const id = variableIds[0] ?? 0;
    const data = Array.from({ length: count }, (_, value) => ({ date: DATE, value }));
    const tagged = data.map((reading) => ({ ...reading, version: `t${reading.value}` }));
    await target.push([{ variableId: id, data: [...data, ...tagged] }]);
    const rows = dataRows.parse(await target.get("/data", { VariableId: id, AllVersions: true }));
    return {
      id,
      kept: [false, true].map((label) => rows.filter((row) => (row.version !== null) === label).length),
    };
  };

  test("is 7 of each kind, or the limit of its account or of the variable", async () => {
    const accounts = [
      { id: 1, name: "First", limits: { versions: 3 } },
      { id: 2, name: "Second" },
    ];
    const small = await startTestHub({ accounts, limits: { versions: 5 } });
    try {
      expect((await submit(hub, {}, 9)).kept).toEqual([7, 7]);
      expect((await submit(small, {}, 9)).kept).toEqual([3, 3]);
      expect((await submit(small, { versionsMax: 8 }, 9)).kept).toEqual([8, 8]);
    } finally {
      await small.close();
    }
  });

  test("takes effect with the next version of a point when it is changed", async () => {
    const { id, kept } = await submit(hub, {}, 9);
    expect(kept).toEqual([7, 7]);
    expect(await hub.ok("PATCH", `/variables/${id}`, { body: { versionsMax: 2 } })).toMatchObject({
      versionsMax: 2,
    });
    await push(id, 100);
    expect(shown(await history(id)).slice(-2)).toEqual(["t8=8", "-=100"]);
    expect((await history(id)).filter((row) => row.version === null)).toHaveLength(2);
    await push(id, 101, "new");
    expect(await history(id)).toHaveLength(4);
    await hub.ok("PATCH", `/variables/${id}`, { body: { versionsMax: null } });
    for (const value of [1, 2, 3]) await push(id, value);
    expect((await history(id)).filter((row) => row.version === null)).toHaveLength(5);
  });

  test.each([0, -1, 1.5, 10_001])("is a whole number from 1 to 10000: %s is refused", async (versionsMax) => {
    const { status } = await hub.call("PUT", "/variables", { body: { id: await versioned(), versionsMax } });
    expect(status).toBe(400);
  });
});

test("a version with a NUL character is discarded with the reason", async () => {
  const id = await versioned();
  expect(await push(id, 1, "a\0b")).toMatchObject({
    stored: 0,
    discarded: [{ reason: "the version holds a NUL character, which cannot be stored", count: 1 }],
  });
  expect(await push(id, 2, "ok", { tags: { note: "a\0b" } })).toMatchObject({ stored: 1 });
  expect(await history(id)).toMatchObject([{ batchTags: { note: "a\0b" } }]);
});

test("a tag with half a surrogate pair is replaced as any other", async () => {
  const id = await versioned();
  for (const value of [1, 2, 3]) await push(id, value, "half \ud83d");
  expect(shown(await history(id))).toEqual(["half \ufffd=3"]);
});
