/** What the writer of SQLite knows of the newest block of a variable, so that it need not look for it. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { applyOperations } from "#hub/push/apply.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import type { IngestStore } from "#hub/store/ingest.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { temporaryDirectory, waitingOperation } from "../fixture.ts";
import { allPoints } from "../stored-points.ts";

const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const NOTHING = { byDefault: 2, byAccount: new Map<number, number>() };

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
let store: HubStore;
let ingest: IngestStore;
let variableId = 0;
let after = 0;

beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, "hub.sqlite");
  after = 0;
  store = await openStore({ kind: "sqlite", path });
  await store.identity.putAccount({ id: 1, name: "First" });
  const siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  const source = await store.structure.createSource(1, { name: "Source", siteId, sourceTypeId: 1 });
  const variable = { name: "Energy", sourceId: source?.id ?? 0, variableTypeId: 0, unitId: 8 };
  variableId = (await store.structure.createVariable(1, variable)) ?? 0;
  ingest = await openIngestStore({ kind: "sqlite", path }, NOTHING, systemClock);
});
afterEach(async () => {
  await ingest.close();
  await store.close();
  await directory.remove();
});

const stepsOf = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

const readingsOf = (from: number, count: number) =>
  stepsOf(from, count).map((value) => ({ date: new Date(BEGIN_MS + value * STEP_MS).toISOString(), value }));

/** Pushes readings whose values are their steps, as a group of its own, which is undone by a fault. */
async function push(from: number, count: number, fault?: Error, labels: object = {}): Promise<void> {
  const body = [{ variableId, ...labels, data: readingsOf(from, count) }];
  await store.operations.accept(waitingOperation(`from ${from}`, body));
  const group = await ingest.next(after, { readings: 1_000, bytes: 1_000_000 });
  after = group.at(-1)?.seq ?? after;
  const columns = new ReadingColumns(1_000);
  const horizon = { byDefault: 1e14, byAccount: new Map<number, number>() };
  await ingest.apply(group, async (...all) => {
    const outcomes = await applyOperations(...all, { discardsMax: 10, horizon, clock: systemClock, columns });
    if (fault !== undefined) throw fault;
    return outcomes;
  });
}

function stored() {
  const file = new DatabaseSync(path, { readOnly: true });
  const [points, blocks] = [file.prepare("SELECT * FROM point").all(), file.prepare("SELECT * FROM point_block").all()];
  file.close();
  const spans = blocks.map((block) =>
    [block["first_ms"], block["last_ms"]].map((ms) => (Number(ms) - BEGIN_MS) / STEP_MS),
  );
  return { values: allPoints(points, blocks).map((row) => row["value"]), rows: points.length, blocks: spans };
}

test("new points continue the newest block, which is written in its place", async () => {
  for (const from of [0, 20, 40]) await push(from, 20);
  expect(stored()).toEqual({ values: stepsOf(0, 60), rows: 0, blocks: [[0, 59]] });
});

test("points that were removed meanwhile are not continued", async () => {
  await push(0, 20);
  await store.points.remove(variableId, null, null);
  await push(20, 20);
  expect(stored()).toEqual({ values: stepsOf(20, 20), rows: 0, blocks: [[20, 39]] });
  await store.points.remove(variableId, BEGIN_MS + 30 * STEP_MS, null);
  await push(40, 20);
  expect(stored()).toEqual({ values: [...stepsOf(20, 10), ...stepsOf(40, 20)], rows: 0, blocks: [[20, 59]] });
});

test("a block of a group that was undone is not continued", async () => {
  await expect(push(0, 20, new RangeError("a defect"))).rejects.toThrow("a defect");
  await push(20, 20);
  await expect(push(40, 1_500, new RangeError("a defect"))).rejects.toThrow("a defect");
  await push(2_000, 20);
  expect(stored()).toEqual({ values: [...stepsOf(20, 20), ...stepsOf(2_000, 20)], rows: 0, blocks: [[20, 2_019]] });
});

test("rows after the newest block become a part of it before later points do", async () => {
  await push(100, 5);
  await push(0, 20);
  expect(stored()).toMatchObject({ rows: 5, blocks: [[0, 19]] });
  await push(110, 20);
  expect(stored()).toEqual({
    values: [...stepsOf(0, 20), ...stepsOf(100, 5), ...stepsOf(110, 20)],
    rows: 0,
    blocks: [[0, 129]],
  });
});

test("a newest block that became rows for a reading with tags is not continued", async () => {
  await push(0, 20);
  await push(5, 1, undefined, { tags: { a: "b" } });
  await push(20, 20);
  expect(stored().values).toEqual(stepsOf(0, 40));
});

test("a full block is followed by another one", async () => {
  for (const from of [0, 900, 1_800]) await push(from, 900);
  await push(2_700, 20);
  expect(stored()).toEqual({
    values: stepsOf(0, 2_720),
    rows: 0,
    blocks: [
      [0, 899],
      [900, 1_799],
      [1_800, 2_719],
    ],
  });
});
