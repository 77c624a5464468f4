/**
 * Intervals that are due to be calculated. A mark is written in the transaction of the change that causes it, by the
 * holder of the account's lane, so that both are durable or neither.
 */
import { systemClock } from "#core/clock.ts";
import { change, rows, type Steps, type StoreDialect } from "../database.ts";
import { FAR_MS } from "../point-rows.ts";
import { number } from "../structure-rows.ts";

export type DueCause = "input" | "slice" | "definition" | "removal" | "force";

/** Both ends included. */
export interface Mark {
  /** Of the calculated variable. */
  readonly variableId: number;
  /** The input that has these dates; null: they are those of the calculated variable itself. */
  readonly inputId: number | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly cause: DueCause;
}

export const WHOLE_HISTORY = { fromMs: -FAR_MS, toMs: FAR_MS } as const;

/** Intervals of one variable and input, beyond which one interval takes the place of them all. */
export const INTERVALS_MAX = 32;
/** Intervals that are nearer to each other become one. */
export const NEAR_MS = 86_400_000;

/** For marks of changes, whose callers have no clock. */
export function nowMs(): number {
  return systemClock.now().epochMilliseconds;
}

interface Due {
  /** Null: not stored yet. */
  readonly id: number | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly markedMs: number;
  readonly cause: DueCause;
}

/** For use inside a write that holds the lane of the account. */
export function* markDue(
  { among }: StoreDialect,
  accountId: number,
  marks: readonly Mark[],
  nowMs: number,
): Steps<void> {
  if (marks.length === 0) return;
  const found = yield* rows(
    `SELECT * FROM calculation_due WHERE account_id = ? AND ${among("variable_id")}`,
    ...[accountId, [...new Set(marks.map(({ variableId }) => variableId))]],
  );
  const known = Map.groupBy(found, (one) => keyOf(Number(one["variable_id"]), number(one["input_id"])));
  const gone: number[] = [];
  const added: (Due & { readonly mark: Mark })[] = [];
  for (const some of Map.groupBy(marks, ({ variableId, inputId }) => keyOf(variableId, inputId)).values()) {
    const [mark] = some;
    if (mark === undefined) continue;
    const before = (known.get(keyOf(mark.variableId, mark.inputId)) ?? []).map(dueOf);
    const after = merged(
      before,
      some.map((one) => ({ ...one, id: null, markedMs: nowMs })),
    );
    const kept = new Set(after.map(({ id }) => id));
    gone.push(...before.flatMap(({ id }) => (id === null || kept.has(id) ? [] : [id])));
    added.push(...after.filter(({ id }) => id === null).map((due) => ({ ...due, mark })));
  }
  if (gone.length > 0) yield* change(`DELETE FROM calculation_due WHERE ${among("id")}`, gone);
  yield* insertAll(accountId, added);
}

/** Intervals that stay as they are keep their ids. */
function merged(before: readonly Due[], marks: readonly Due[]): readonly Due[] {
  let all: readonly Due[] = before;
  for (const mark of marks) {
    const isNear = ({ fromMs, toMs }: Due) => fromMs - NEAR_MS <= mark.toMs && mark.fromMs - NEAR_MS <= toMs;
    const near = all.filter(isNear);
    const [only] = near;
    const isCovered =
      near.length === 1 &&
      only !== undefined &&
      only.fromMs <= mark.fromMs &&
      mark.toMs <= only.toMs &&
      (mark.cause !== "slice" || only.cause === "slice");
    if (!isCovered) all = [...all.filter((one) => !isNear(one)), hullOf(mark, near)];
  }
  const [first, ...others] = all;
  return first === undefined || all.length <= INTERVALS_MAX ? all : [hullOf({ ...first, id: null }, others)];
}

function hullOf(one: Due, others: readonly Due[]): Due {
  const all = [one, ...others];
  return {
    ...one,
    fromMs: Math.min(...all.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...all.map(({ toMs }) => toMs)),
    markedMs: Math.min(...all.map(({ markedMs }) => markedMs)),
    // Values of forms reach further than dates that are calculated for another cause.
    cause: all.some(({ cause }) => cause === "slice") ? "slice" : one.cause,
  };
}

const ROWS_AT_ONCE = 500;

function* insertAll(accountId: number, all: readonly (Due & { readonly mark: Mark })[]): Steps<void> {
  for (let at = 0; at < all.length; at += ROWS_AT_ONCE) {
    const some = all.slice(at, at + ROWS_AT_ONCE);
    yield* change(
      `INSERT INTO calculation_due (account_id, variable_id, input_id, from_ms, to_ms, marked_ms, cause)
        VALUES ${some.map(() => "(?, ?, ?, ?, ?, ?, ?)").join(", ")}`,
      ...some.flatMap(({ mark: { variableId, inputId }, fromMs, toMs, markedMs, cause }) => [
        accountId,
        variableId,
        inputId,
        fromMs,
        toMs,
        markedMs,
        cause,
      ]),
    );
  }
}

const keyOf = (variableId: number, inputId: number | null) => `${variableId} ${inputId ?? ""}`;

function dueOf(one: Readonly<Record<string, unknown>>): Due {
  return {
    id: Number(one["id"]),
    fromMs: Number(one["from_ms"]),
    toMs: Number(one["to_ms"]),
    markedMs: Number(one["marked_ms"]),
    cause: String(one["cause"]) as DueCause,
  };
}

/** Points of an input that came, changed or went. */
export interface TouchedInput {
  readonly inputId: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Marks the calculated variables that these inputs trigger. For use inside a write that holds the lane. */
export function* markDependants(
  dialect: StoreDialect,
  accountId: number,
  touched: readonly TouchedInput[],
  cause: DueCause,
  nowMs: number,
): Steps<void> {
  if (touched.length === 0) return;
  const inputs = touched.map(({ inputId }) => inputId);
  const found = yield* rows(
    `SELECT calculated_id, variable_id FROM calculated_input
      WHERE account_id = ? AND is_trigger AND ${dialect.among("variable_id")}`,
    ...[accountId, inputs],
  );
  const users = Map.groupBy(found, (one) => Number(one["variable_id"]));
  const marks = touched.flatMap((one) =>
    (users.get(one.inputId) ?? []).map((user) => ({ ...one, variableId: Number(user["calculated_id"]), cause })),
  );
  yield* markDue(dialect, accountId, marks, nowMs);
}

/** Form values of sites or sources, of these fields, or of all. */
export interface ChangedValues {
  readonly entity: "site" | "source";
  readonly ids: readonly number[];
  readonly fieldIds?: readonly number[];
  readonly fromMs: number;
  readonly toMs: number;
}

/** Marks the calculated variables whose formulas read the values. For use inside a write that holds the lane. */
export function* markReaders(
  dialect: StoreDialect,
  accountId: number,
  { entity, ids, fieldIds, fromMs, toMs }: ChangedValues,
): Steps<void> {
  if (ids.length === 0) return;
  const ofFields = fieldIds === undefined ? "" : ` AND ${dialect.among("field_id")}`;
  const found = yield* rows(
    `SELECT DISTINCT calculated_id FROM calculated_field
      WHERE account_id = ? AND entity = ? AND ${dialect.among("entity_id")}${ofFields}`,
    ...[accountId, entity, ids, ...(fieldIds === undefined ? [] : [fieldIds])],
  );
  const period = { inputId: null, fromMs, toMs, cause: "slice" as const };
  const marks = found.map((one) => ({ variableId: Number(one["calculated_id"]), ...period }));
  yield* markDue(dialect, accountId, marks, nowMs());
}

/** The zone by which the variables of a source cut days, in SQL. */
const ZONE = "coalesce(source.time_zone_id, site.time_zone_id)";

/** The zones of sources by their ids: of these, or of those of sites. For use before and after a change. */
export function* zonesOf(
  { among }: StoreDialect,
  accountId: number,
  of: "source" | "site",
  ids: readonly number[],
): Steps<ReadonlyMap<number, string>> {
  if (ids.length === 0) return new Map();
  const found = yield* rows(
    `SELECT source.id, ${ZONE} AS zone FROM source JOIN site ON site.id = source.site_id
      WHERE source.account_id = ? AND ${among(`${of}.id`)}`,
    ...[accountId, ids],
  );
  return new Map(found.map((one) => [Number(one["id"]), String(one["zone"])]));
}

/** Marks the calculated variables of the sources whose zone is another one than before: it cuts their days. */
export function* markRezoned(
  dialect: StoreDialect,
  accountId: number,
  before: ReadonlyMap<number, string>,
): Steps<void> {
  const after = yield* zonesOf(dialect, accountId, "source", [...before.keys()]);
  const changed = [...before].flatMap(([id, zone]) => (after.get(id) === zone ? [] : [id]));
  if (changed.length === 0) return;
  const found = yield* rows(
    `SELECT id FROM variable WHERE account_id = ? AND calculated IS NOT NULL AND ${dialect.among("source_id")}`,
    ...[accountId, changed],
  );
  const whole = { inputId: null, ...WHOLE_HISTORY, cause: "definition" as const };
  const marks = found.map((one) => ({ variableId: Number(one["id"]), ...whole }));
  yield* markDue(dialect, accountId, marks, nowMs());
}

// The stretches of time in which points lie, for marks of what they make due. Both ends are included.

export interface DateInterval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Of dates in any order. */
export function intervalsOf(dates: readonly number[]): readonly DateInterval[] {
  return joined(Array.from(Float64Array.from(dates).sort(), (atMs) => ({ fromMs: atMs, toMs: atMs })));
}

/** Intervals near to each other become one; then the nearest ones do, until `INTERVALS_MAX` or fewer are left. */
export function joined(intervals: readonly DateInterval[]): readonly DateInterval[] {
  const all = joinedWithin(intervals, NEAR_MS);
  if (all.length <= INTERVALS_MAX) return all;
  const gaps = all.slice(1).map(({ fromMs }, at) => fromMs - (all[at]?.toMs ?? fromMs));
  const widest = gaps.toSorted((one, other) => other - one);
  return joinedWithin(all, widest[INTERVALS_MAX - 1] ?? NEAR_MS);
}

function joinedWithin(intervals: readonly DateInterval[], gapMs: number): readonly DateInterval[] {
  const all: DateInterval[] = [];
  for (const { fromMs, toMs } of intervals.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const last = all.at(-1);
    if (last !== undefined && fromMs - last.toMs <= gapMs)
      all[all.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, toMs) };
    else all.push({ fromMs, toMs });
  }
  return all;
}
