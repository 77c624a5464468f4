/** Groups of operations are stored as though each came alone. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { applyOperations } from "#hub/push/apply.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import type { IngestStore } from "#hub/store/ingest.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { plainInstantMs, READING_RULE, readInstant } from "#hub/time.ts";
import { temporaryDirectory, waitingOperation } from "./fixture.ts";
import { allPoints } from "./stored-points.ts";

const VARIABLES = 3;
const HORIZON = { byDefault: 1_000, byAccount: new Map<number, number>() };
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

interface Opened {
  readonly path: string;
  readonly store: HubStore;
  readonly ingest: IngestStore;
  close(): Promise<void>;
}

/** An empty store with a versioned variable and two others. */
async function open(name: string, versionsMax: number): Promise<Opened> {
  const path = join(directory.path, name);
  const options = { kind: "sqlite", path } as const;
  const store = await openStore(options);
  await store.identity.putAccount({ id: 1, name: "First" });
  const siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  const source = await store.structure.createSource(1, { name: "Source", siteId, sourceTypeId: 1 });
  for (let index = 0; index < VARIABLES; index += 1)
    await store.structure.createVariable(1, {
      name: "Energy",
      sourceId: source?.id ?? 0,
      variableTypeId: 0,
      unitId: 8,
      isVersioned: index === 0,
    });
  const ingest = await openIngestStore(options, { byDefault: versionsMax, byAccount: new Map() }, systemClock);
  const close = async () => {
    await ingest.close();
    await store.close();
  };
  return { path, store, ingest, close };
}

let sent = 0;
async function accept(store: HubStore, elements: object[]): Promise<string> {
  sent += 1;
  await store.operations.accept(waitingOperation(`op-${sent}`, elements));
  return `op-${sent}`;
}

/** Applies all that waits, in groups; `capacity`: readings in memory. */
async function drain({ ingest }: Opened, groupBytes: number, capacity: number): Promise<void> {
  const columns = new ReadingColumns(capacity);
  for (let after = 0; ; ) {
    const group = await ingest.next(after, { readings: 1_000, bytes: groupBytes });
    if (group.length === 0) return;
    after = group.at(-1)?.seq ?? after;
    await ingest.apply(group, (transaction, operations) =>
      applyOperations(transaction, operations, {
        discardsMax: 10,
        horizon: HORIZON,
        clock: systemClock,
        columns,
      }),
    );
  }
}

function contents(path: string): object {
  const database = new DatabaseSync(path, { readOnly: true });
  const columns = `variable_id, at_ms, value, version, tags, batch_tags,
    (SELECT operation_id FROM origin WHERE id = origin_id) AS origin`;
  const operations = new Map(
    database
      .prepare("SELECT id, operation_id FROM origin")
      .all()
      .map((row) => [Number(row["id"]), row["operation_id"]]),
  );
  const points = allPoints(
    database.prepare(`SELECT ${columns} FROM point`).all(),
    database.prepare("SELECT * FROM point_block").all(),
    (id) => ({ origin: operations.get(id) }),
  );
  const order = "ORDER BY variable_id, at_ms, version_us";
  const versions = database.prepare(`SELECT ${columns} FROM point_version ${order}`).all();
  const outcomes = database
    .prepare("SELECT received, stored, replaced, discarded, notices FROM outcome ORDER BY seq")
    .all();
  database.close();
  return { points, versions, outcomes };
}

const tag = fc.option(fc.constantFrom("a", "b"), { nil: undefined });
/** Decimals beyond the millisecond. */
const beyond = fc.option(fc.constantFrom("1", "100", "9"), { nil: "", freq: 4 });
const reading = fc.record({
  minute: fc.integer({ min: 0, max: 9 }),
  beyond,
  value: fc.integer({ min: 0, max: 3 }),
  version: tag,
});
const element = fc.record({
  variableId: fc.integer({ min: 1, max: VARIABLES + 1 }),
  version: tag,
  data: fc.array(reading, { maxLength: 12 }),
});
/** A long run of new points beside them, so that statements of many rows are made too. */
const long = fc.record({
  variableId: fc.integer({ min: 1, max: VARIABLES }),
  version: tag,
  data: fc
    .tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 40, max: 130 }))
    .map(([from, count]) =>
      Array.from({ length: count }, (_, index) => ({ minute: from + index, beyond: "", value: index })),
    ),
});
const elements = fc.array(fc.oneof({ weight: 3, arbitrary: element }, long), { maxLength: 5 });
const dated = (list: readonly { data: readonly { minute: number; beyond: string }[] }[]) =>
  list.map((one) => ({
    ...one,
    data: one.data.map(({ minute, beyond, ...more }) => ({
      ...more,
      date: `${new Date(Date.UTC(2026, 2, 1, 0, minute)).toISOString().slice(0, -1)}${beyond}Z`,
    })),
  }));

test(
  "operations applied in groups leave the same points, versions and outcomes as operations applied one " + "by one",
  async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(elements, { maxLength: 8 }),
        fc.integer({ min: 1, max: 300 }),
        async (operations, capacity) => {
          round += 1;
          const grouped = await open(`grouped-${round}`, 2);
          const alone = await open(`alone-${round}`, 2);
          for (const { store } of [grouped, alone]) {
            sent = 0;
            for (const list of operations) await accept(store, dated(list));
          }
          await drain(grouped, 1_000_000, capacity);
          await drain(alone, 1, 1_000);
          await Promise.all([grouped.close(), alone.close()]);
          expect(contents(grouped.path)).toEqual(contents(alone.path));
        },
      ),
      { numRuns: 20 },
    );
  },
);

describe("a group", () => {
  const DATE = "2026-03-01T00:00:00Z";
  const push = (opened: Opened, variableId: number) =>
    accept(opened.store, [{ variableId, data: [{ date: DATE, value: 1 }] }]);

  test("is stored whole or not at all, and again from the start when that failed", async () => {
    const opened = await open("hub", 7);
    const names = [await push(opened, 1), await push(opened, 2)];
    const group = await opened.ingest.next(0, { readings: 1_000, bytes: 1_000_000 });
    expect(group).toHaveLength(2);
    const columns = new ReadingColumns(10);
    const parts = { discardsMax: 10, horizon: HORIZON, clock: systemClock, columns };
    const failing = opened.ingest.apply(group, async (transaction, operations) => {
      await applyOperations(transaction, operations, parts);
      throw new Error("on purpose");
    });
    await expect(failing).rejects.toThrow("on purpose");
    expect(contents(opened.path)).toEqual({ points: [], versions: [], outcomes: [] });
    await drain(opened, 1_000_000, 10);
    // What was applied is left out, and what remains of a group gets its own outcomes.
    names.push(await push(opened, 3));
    await drain(opened, 1_000_000, 10);
    for (const name of names)
      expect(await opened.store.operations.operation(1, name)).toMatchObject({ outcome: { stored: 1 } });
    await opened.close();
    expect(contents(opened.path)).toMatchObject({ points: [{}, {}, {}], outcomes: [{}, {}, {}] });
  });

  test("whose targets changed while it was collected is collected again", async () => {
    const opened = await open("hub", 7);
    await push(opened, 1);
    const name = await push(opened, 2);
    const group = await opened.ingest.next(0, { readings: 1_000, bytes: 1_000_000 });
    const parts = { discardsMax: 10, horizon: HORIZON, clock: systemClock, columns: new ReadingColumns(10) };
    let calls = 0;
    await opened.ingest.apply(group, async (transaction, operations) => {
      calls += 1;
      await transaction.findVariable(1, {
        by: "variableId",
        value: 2,
        mappingConfig: undefined,
        variableTypeId: undefined,
      });
      if (calls === 1) await opened.store.structure.remove(1, "variable", 2, true);
      return applyOperations(transaction, operations, parts);
    });
    expect(calls).toBe(2);
    expect(await opened.store.operations.operation(1, name)).toMatchObject({
      outcome: { stored: 0, discarded: [{ reason: "no such variable in this account" }] },
    });
    await opened.close();
  });
});

describe("limits", () => {
  test("readings beyond the future horizon of the account are discarded, and the outcome reports it", async () => {
    const opened = await open("hub", 7);
    const now = Temporal.Instant.from("2026-03-01T00:00:00Z");
    const dates = ["2026-03-01T00:00:01Z", "2026-03-01T00:00:01.001Z", "2026-03-02T00:00:00Z"];
    const data = dates.map((date, value) => ({ date, value }));
    const name = await accept(opened.store, [{ variableId: 1, data }]);
    const clock = { ...systemClock, now: () => now };
    const parts = { discardsMax: 10, horizon: HORIZON, clock, columns: new ReadingColumns(10) };
    const group = await opened.ingest.next(0, { readings: 1_000, bytes: 1_000_000 });
    await opened.ingest.apply(group, (...all) => applyOperations(...all, parts));
    const reason = `the date is beyond the future horizon of the account: "${dates[1]}"`;
    expect(await opened.store.operations.operation(1, name)).toMatchObject({
      outcome: { stored: 1, discarded: [{ target: "variableId=1", reason, count: 2 }] },
    });
    await opened.close();
  });

  test("an operation that takes longer than its operationTimeoutSec leaves nothing behind", async () => {
    const opened = await open("hub", 7);
    const data = Array.from({ length: 40 }, (_, value) => ({
      date: `2026-03-01T00:${10 + value}:00Z`,
      value,
    }));
    await accept(opened.store, [{ variableId: 1, data }]);
    let ms = 0;
    const clock = {
      ...systemClock,
      monotonicMs: () => {
        ms += 30_000;
        return ms;
      },
    };
    const parts = { discardsMax: 10, horizon: HORIZON, clock, columns: new ReadingColumns(10) };
    const group = await opened.ingest.next(0, { readings: 1_000, bytes: 1_000_000 });
    const applied = opened.ingest.apply(group, (...all) => applyOperations(...all, parts));
    await expect(applied).rejects.toThrow("longer than its operationTimeoutSec of 60 s");
    await opened.close();
    expect(contents(opened.path)).toEqual({ points: [], versions: [], outcomes: [] });
  });
});

test("dates of the usual form are parsed like all other dates", () => {
  const part = (max: number) => fc.integer({ min: 0, max }).map((one) => String(one).padStart(2, "0"));
  const usual = fc
    .tuple(
      fc.integer({ min: 0, max: 9_999 }),
      part(14),
      part(33),
      part(25),
      part(61),
      part(61),
      fc.constantFrom("Z", ".007Z", ".x0Z"),
    )
    .map(
      ([year, month, day, hour, minute, second, end]) =>
        `${String(year).padStart(4, "0")}-${month}-${day}T${hour}:${minute}:${second}${end}`,
    );
  const broken = fc
    .tuple(usual, fc.nat(23), fc.constantFrom("x", " ", ".", "-", "１"))
    .map(([text, at, mark]) => text.slice(0, at) + mark + text.slice(at + 1));
  fc.assert(
    fc.property(fc.oneof(usual, broken), (text) => {
      const read = readInstant(text, "UTC", READING_RULE);
      const plain = plainInstantMs(text);
      // What the quick way does not read, the other way does or refuses.
      if (!Number.isNaN(plain)) expect(read).toEqual({ kind: "instant", ms: plain, beyond: "" });
    }),
    { numRuns: 2_000 },
  );
  expect(plainInstantMs("2026-03-01T00:15:00.250Z")).toBe(Date.UTC(2026, 2, 1, 0, 15, 0, 250));
});
