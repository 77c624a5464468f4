/** Intervals that are due to be calculated, marked by each change that a formula can see. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { judgeDefinition } from "#hub/calculated/definition/change.ts";
import { hubOptions } from "#hub/options.ts";
import { applyOperations } from "#hub/push/apply.ts";
import { INTERVALS_MAX, type Mark, markDue, WHOLE_HISTORY } from "#hub/store/calculated/marks.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import { insert, rows, type StoreDialect } from "#hub/store/database.ts";
import type { IngestReport, IngestStore } from "#hub/store/ingest.ts";
import { IngestEffects } from "#hub/store/ingest-effects.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import { POSTGRES } from "#hub/store/postgres/dialect.ts";
import { SQLITE } from "#hub/store/sqlite/dialect.ts";
import type { HubStore } from "#hub/store/store.ts";
import { type Calculated, calculatedBody } from "#wire/index.ts";
import { rawOptions, temporaryDirectory, waitingOperation } from "../fixture.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LIMITS = { readings: 1_000, bytes: 1_000_000 };
const HORIZON = { byDefault: 1_000, byAccount: new Map<number, number>() };
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let store: HubStore;
let ingest: IngestStore;
let dialect: StoreDialect;
let siteId: number;
let sourceId: number;
let input: number;

beforeEach(async () => {
  directory = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory.path)).store;
  dialect = options.kind === "sqlite" ? SQLITE : POSTGRES;
  store = await openStore(options);
  await store.identity.putAccount({ id: 1, name: "First" });
  siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  sourceId = (await store.structure.createSource(1, { name: "Source", siteId, sourceTypeId: 1 }))?.id ?? 0;
  input = await create();
  ingest = await openIngestStore(options, { byDefault: 7, byAccount: new Map() }, systemClock);
});
afterEach(async () => {
  await ingest.close();
  await store.close();
  await directory.remove();
});

async function create(calculated?: Calculated): Promise<number> {
  const body = { name: "Energy", sourceId, variableTypeId: 0, unitId: 8, ...(calculated && { calculated }) };
  const id = await store.structure.createVariable(1, body, (facts, wanted) => judgeDefinition(facts, wanted, "webr"));
  return id ?? 0;
}

const reading = (variableId: number, more: object = {}) =>
  calculatedBody.parse({
    calculatedVariableFormulas: [{ formula: "1", variables: [{ alias: "a", variableId, ...more }] }],
  });

interface Due {
  readonly variable: number;
  readonly input: number | null;
  readonly from: number;
  readonly to: number;
  readonly cause: string;
}

function due(): Promise<readonly Due[]> {
  return store.people.change(function* () {
    const found = yield* rows("SELECT * FROM calculation_due ORDER BY variable_id, input_id, from_ms");
    return found.map((one) => ({
      variable: Number(one["variable_id"]),
      input: one["input_id"] === null ? null : Number(one["input_id"]),
      from: Number(one["from_ms"]),
      to: Number(one["to_ms"]),
      cause: String(one["cause"]),
    }));
  });
}

const forget = () =>
  store.people.change(function* () {
    yield* rows("DELETE FROM calculation_due RETURNING id");
  });

/** Pushes values at these dates, and applies what waits. */
async function push(variableId: number, dates: readonly number[], calculationId: number | null = null) {
  const data = dates.map((at) => ({ date: new Date(at).toISOString(), value: 1 }));
  const operation = waitingOperation(`op-${dates.join()}`, [{ variableId, data }]);
  await store.operations.accept({ ...operation, calculationId });
  return applyAll();
}

let after = 0;
beforeEach(() => {
  after = 0;
});
async function applyAll(): Promise<IngestReport> {
  const group = await ingest.next(after, LIMITS);
  after = group.at(-1)?.seq ?? after;
  const parts = { discardsMax: 10, horizon: HORIZON, clock: systemClock, columns: new ReadingColumns(1_000) };
  return ingest.apply(group, (transaction, operations) => applyOperations(transaction, operations, parts));
}

test("a new definition makes its whole history due", async () => {
  const id = await create(reading(input));
  expect(await due()).toEqual([
    { variable: id, input: null, from: WHOLE_HISTORY.fromMs, to: WHOLE_HISTORY.toMs, cause: "definition" },
  ]);
});

describe("points", () => {
  test("make due the variables that their input triggers, and no others", async () => {
    const first = await create(reading(input));
    const second = await create(reading(first));
    await create(reading(input, { canBeUsedAsATrigger: false }));
    await forget();
    expect(await push(input, [5 * HOUR, 2 * HOUR, 3 * HOUR])).toEqual({ due: [1], damaged: [] });
    expect(await due()).toEqual([{ variable: first, input, from: 2 * HOUR, to: 5 * HOUR, cause: "input" }]);
    expect(second).toBeGreaterThan(first);
  });

  test("cost one statement more, for rollups, where no variable is calculated, once that is known", () => {
    const effects = new IngestEffects(dialect, systemClock);
    const columns = new ReadingColumns(1);
    const facts = { id: input, accountId: 1, sourceId, unitId: 8, isVersioned: false, isCalculated: false };
    const zones = { versionsMax: null, sourceZoneId: "UTC", siteZoneId: "UTC" };
    columns.add(0, columns.positionOf({ ...facts, ...zones }), HOUR, 1, null);
    const statements = () => {
      effects.begin();
      effects.written(columns, { replaced: [], damaged: [] });
      const steps = effects.applied([], [], "done");
      let count = 0;
      for (let next = steps.next(); next.done !== true; next = steps.next([])) count += 1;
      return count;
    };
    const first = statements();
    expect(first).toBeGreaterThan(1);
    expect(statements()).toBe(1);
    effects.forget(1);
    expect(statements()).toBe(first);
  });

  test("of an account without calculated variables make nothing due", async () => {
    expect(await push(input, [HOUR])).toEqual({ due: [], damaged: [] });
    expect(await due()).toEqual([]);
  });

  test("of a variable that a formula reads since a moment make it due", async () => {
    await push(input, [HOUR]);
    await create(reading(input));
    await forget();
    expect(await push(input, [2 * HOUR])).toEqual({ due: [1], damaged: [] });
  });

  test("that are removed make due the time in which they were", async () => {
    const id = await create(reading(input));
    await push(input, [HOUR, 2 * HOUR, 50 * DAY]);
    await forget();
    await store.points.remove(input, null, 10 * DAY);
    await store.points.remove(input, 10 * DAY, 20 * DAY);
    expect(await due()).toEqual([{ variable: id, input, from: HOUR, to: 2 * HOUR, cause: "removal" }]);
  });
});

describe("intervals", () => {
  const mark = (fromMs: number, toMs: number): Mark => ({
    variableId: input,
    inputId: 7,
    fromMs,
    toMs,
    cause: "input",
  });
  const marked = async (...marks: readonly Mark[]) => {
    await store.calculated.mark(1, marks, 0);
    return (await due()).map(({ from, to }) => [from, to]);
  };

  test("less than a day apart become one, and others stay apart", async () => {
    expect(await marked(mark(0, HOUR), mark(10 * DAY, 11 * DAY))).toEqual([
      [0, HOUR],
      [10 * DAY, 11 * DAY],
    ]);
    expect(await marked(mark(HOUR + DAY, 2 * DAY))).toEqual([
      [0, 2 * DAY],
      [10 * DAY, 11 * DAY],
    ]);
    expect(await marked(mark(DAY, DAY), mark(3 * DAY, 9 * DAY))).toEqual([[0, 11 * DAY]]);
  });

  test("that are too many become one", async () => {
    const all = Array.from({ length: INTERVALS_MAX }, (_, at) => mark(at * 10 * DAY, at * 10 * DAY));
    expect(await marked(...all)).toHaveLength(INTERVALS_MAX);
    expect(await marked(mark(-10 * DAY, -10 * DAY))).toEqual([[-10 * DAY, (INTERVALS_MAX - 1) * 10 * DAY]]);
  });

  test("of another input are kept apart", async () => {
    await store.calculated.mark(1, [mark(0, HOUR), { ...mark(0, HOUR), inputId: null }], 0);
    expect((await due()).map((one) => one.input).sort()).toEqual([7, null]);
  });

  test("are gone with the transaction that marked them", async () => {
    const failed = store.people.change(function* () {
      yield* markDue(dialect, 1, [mark(0, 1)], 0);
      throw new Error("on purpose");
    });
    await expect(failed).rejects.toThrow("on purpose");
    expect(await due()).toEqual([]);
  });
});

describe("an operation of a calculation", () => {
  const calculation = (variableId: number) =>
    store.people.change(function* () {
      const period = { from_ms: 0, to_ms: 0, marked_ms: 0, started_ms: 0, lease_ms: 0 };
      const run = { state: "storing", due: "[]", default_version: "v", node: "n", parts: 1 };
      return yield* insert("calculation", { account_id: 1, variable_id: variableId, ...period, ...run });
    });
  const stateOf = (id: number) =>
    store.people.change(function* () {
      const [found] = yield* rows("SELECT state, stored, discarded FROM calculation WHERE id = ?", id);
      return found && { state: found["state"], stored: Number(found["stored"]), discarded: Number(found["discarded"]) };
    });

  test("stores its outputs, makes the calculation done and the next variable due", async () => {
    const id = await create(reading(input));
    const next = await create(reading(id));
    await forget();
    const run = await calculation(id);
    await push(id, [HOUR, 2 * HOUR], run);
    expect(await stateOf(run)).toEqual({ state: "done", stored: 2, discarded: 0 });
    expect(await due()).toEqual([{ variable: next, input: id, from: HOUR, to: 2 * HOUR, cause: "input" }]);
    expect((await store.points.holding(id, null, null)).points).toBe(2);
  });

  test("is discarded where a change of the definition has superseded it", async () => {
    const id = await create(reading(input));
    const run = await calculation(id);
    const judge = (facts: Parameters<typeof judgeDefinition>[0], wanted: Calculated) =>
      judgeDefinition(facts, wanted, "webr");
    const { rows: found } = await store.structure.variables(1, { ids: [id] }, { offset: 0, limit: 1 });
    const body = { name: "Energy", sourceId, variableTypeId: 0, unitId: 8 };
    expect(found[0]?.calculated).toEqual(reading(input));
    await store.structure.changeVariable(1, id, () => body, judge);
    expect(await stateOf(run)).toBeUndefined();
    await push(id, [HOUR], run);
    expect((await store.points.holding(id, null, null)).points).toBe(0);
    expect(await due()).toEqual([]);
  });
});

test("slices and other values of forms make due the formulas that read them", async () => {
  const forms = await field();
  const id = await create(
    calculatedBody.parse({
      calculatedVariableFormulas: [
        {
          ...{ formula: "1", validFrom: "1970-01-01T00:00:00Z" },
          entities: [
            { alias: "e", entityType: 1, siteId, formId: forms.id, groupId: forms.group, propId: forms.sliced },
          ],
        },
      ],
    }),
  );
  await forget();
  const slice = (fromMs: number) => ({ fromMs, value: 1 });
  const add = (fieldId: number, fromMs: number) =>
    store.slices.edit(1, "site", siteId, () => ({ kind: "add", fieldId, slice: slice(fromMs), references: [] }));
  await add(forms.other, DAY);
  expect(await due()).toEqual([]);
  const last = await add(forms.sliced, 20 * DAY);
  expect(await due()).toEqual([{ variable: id, input: null, from: 20 * DAY, to: WHOLE_HISTORY.toMs, cause: "slice" }]);
  await forget();
  await add(forms.sliced, 10 * DAY);
  expect(await due()).toEqual([{ variable: id, input: null, from: 10 * DAY, to: 20 * DAY - 1, cause: "slice" }]);
  await forget();
  await store.slices.edit(1, "site", siteId, () => ({
    kind: "change",
    id: Number(last),
    slice: slice(15 * DAY),
    references: [],
  }));
  expect(await due()).toEqual([{ variable: id, input: null, from: 15 * DAY, to: WHOLE_HISTORY.toMs, cause: "slice" }]);
  await forget();
  const { rows: sites } = await store.structure.sites(1, { ids: [siteId] }, { offset: 0, limit: 1 });
  const body = { name: sites[0]?.name ?? "", typeId: 3, timeZoneId: "UTC" };
  await store.structure.changeSite(1, siteId, () => ({ body, values: null }));
  expect(await due()).toEqual([]);
  const clientData = { Building: { Main: { Note: "x" } } };
  await store.structure.changeSite(1, siteId, () => ({ body: { ...body, clientData }, values: null }));
  expect(await due()).toEqual([{ variable: id, input: null, ...whole(), cause: "slice" }]);
});

const whole = () => ({ from: WHOLE_HISTORY.fromMs, to: WHOLE_HISTORY.toMs });

async function field() {
  const common = { id: null, type: 2, isList: false, required: false, timeSliced: true, options: null };
  const fields = [
    { ...common, name: "Area", displayOrder: 1, referenceTo: null },
    { ...common, name: "Other", displayOrder: 2, referenceTo: null },
  ];
  const groups = [{ id: null, name: "Main", displayHeader: null, displayOrder: 1, fields }];
  const form = { name: "Building", type: 1, displayOrder: 1, entityType: "Site", groups } as const;
  const made = await store.forms.create(1, form, { refit: () => undefined, refitSlices: () => [] }, 10);
  if (made === "taken") throw new Error("the form is there already");
  const [group] = made.groups;
  const [sliced, other] = group?.fields ?? [];
  return { id: made.id, group: group?.id, sliced: sliced?.id ?? 0, other: other?.id ?? 0 };
}
