/** Selects the variables of a query, and removes points. Reads of points differ by database. */
import { breath } from "#core/turns.ts";
import { heldInBlocks, removeFromBlocks } from "./blocks/blocks.ts";
import { markDependants, nowMs } from "./calculated/marks.ts";
import { apartFor, change, type Database, row, rows, type Steps, type StoreDialect } from "./database.ts";
import { FAR_MS } from "./point-rows.ts";
import { mayBeInBlocks, selection } from "./point-selection.ts";
import type { Holding, VariableFacts, VariablesFilter } from "./records.ts";
import { createRollupStore } from "./rollups/rollups.ts";
import { dropRollups } from "./rollups/watch.ts";
import { noteChange } from "./source-zones.ts";
import type { PointStore } from "./store.ts";
import { factsOf, number, VARIABLE_FACTS } from "./structure-rows.ts";
import { Where } from "./where.ts";

export interface RemovalLimits {
  /** Points that one transaction removes: pushes wait only for a moment. */
  readonly removedAtOnce: number;
  /** Called after so many rows were read, so that the event loop can serve other requests. */
  readonly breathe: (rows: number) => Promise<void>;
}

/** Variables, or sources, whose facts are read at one time: an account may have a million. */
const KEYS_AT_ONCE = 2_000;

/** The page of a read of all points. */
export const WHOLE = { offset: 0, limit: null };
const PERIOD = "variable_id = ? AND at_ms >= ? AND at_ms < ?";

function whereOf(dialect: StoreDialect, accountId: number | null, filter: VariablesFilter): Where {
  const where = new Where(dialect)
    .among("variable.id", filter.ids)
    .among("variable.source_id", filter.sourceIds)
    .among("variable.variable_type_id", filter.variableTypeIds)
    .sharing("variable.tags", filter.tags);
  return accountId === null ? where : where.equal("variable.account_id", accountId);
}

function* selectFacts(
  dialect: StoreDialect,
  accountId: number | null,
  filter: VariablesFilter,
): Steps<readonly VariableFacts[]> {
  const where = whereOf(dialect, accountId, filter);
  return (yield* rows(`SELECT ${VARIABLE_FACTS} ${where.sql} ORDER BY variable.id`, ...where.values)).map(factsOf);
}

/** As one text, since a row for each of a million takes seconds. */
function* selectIds(
  dialect: StoreDialect,
  accountId: number | null,
  filter: VariablesFilter,
): Steps<readonly number[]> {
  const where = whereOf(dialect, accountId, filter);
  const selected = `SELECT variable.id FROM variable ${where.sql} ORDER BY variable.id`;
  const sql = `SELECT string_agg(CAST(id AS TEXT), ',') AS ids FROM (${selected}) AS selected`;
  const ids = (yield* row(sql, ...where.values))?.["ids"];
  return typeof ids === "string" ? ids.split(",").map(Number) : [];
}

export function pointMethods(
  database: Database,
  { removedAtOnce, breathe }: RemovalLimits,
): Pick<PointStore, "select" | "holding" | "remove" | "count" | "rollups"> {
  const { dialect } = database;
  return {
    rollups: createRollupStore(database),
    async select(accountId, filter) {
      const selected = (wanted: VariablesFilter) => database.ask(() => selectFacts(dialect, accountId, wanted));
      const isShort = [filter.ids, filter.sourceIds].some((list) => list !== undefined && list.length <= KEYS_AT_ONCE);
      if (isShort) return selected(filter);
      const on = accountId === null ? database : apartFor(database, accountId, [filter.tags]);
      const ids = await on.ask(() => selectIds(dialect, accountId, filter));
      const found: VariableFacts[] = [];
      for (let at = 0; at < ids.length; at += KEYS_AT_ONCE) {
        for (const one of await selected({ ids: ids.slice(at, at + KEYS_AT_ONCE) })) found.push(one);
        await breath();
      }
      return found;
    },
    async count(variable, range) {
      const { from, values } = selection(variable, range.view);
      const [lowMs, highMs] = [range.fromMs ?? -FAR_MS, range.lastMs ?? FAR_MS];
      const total = await database.snapshot(function* () {
        const found = yield* row(
          `SELECT count(*) AS total ${from} AND at_ms BETWEEN ? AND ?`,
          ...values,
          lowMs,
          highMs,
        );
        const inRows = Number(found?.["total"]);
        if (!mayBeInBlocks(variable, range.view)) return inRows;
        return inRows + (yield* heldInBlocks(variable.id, lowMs, highMs)).points;
      });
      await breathe(total);
      return total;
    },
    async holding(id, fromMs, toMs) {
      const held = await database.snapshot(() => holdingOf(id, fromMs ?? -FAR_MS, toMs ?? FAR_MS));
      await breathe(held.points + held.versions);
      return held;
    },
    async remove(id, fromMs, toMs) {
      const all = { points: 0, versions: 0, firstMs: null as number | null, lastMs: null as number | null };
      for (let low = fromMs ?? -FAR_MS; ; ) {
        const part = await database.write(function* () {
          yield* dialect.holdVariable(id);
          const removed = yield* removePart(id, low, toMs ?? FAR_MS, removedAtOnce);
          yield* markRemoved(dialect, id, removed.held);
          return removed;
        });
        all.points += part.held.points;
        all.versions += part.held.versions;
        all.firstMs ??= part.held.firstMs;
        all.lastMs = part.held.lastMs ?? all.lastMs;
        if (part.nextMs === null) return all;
        low = part.nextMs;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

/** Outputs that were calculated from removed points are calculated again without them, and so are rollups. */
function* markRemoved(dialect: StoreDialect, inputId: number, { firstMs, lastMs }: Holding): Steps<void> {
  if (firstMs === null || lastMs === null) return;
  yield* dropRollups(dialect, [{ variableId: inputId, fromMs: firstMs, toMs: lastMs }]);
  const variable = yield* row("SELECT account_id FROM variable WHERE id = ?", inputId);
  const accountId = Number(variable?.["account_id"]);
  // The newest points of the account are kept at hand: these may be among them.
  yield* noteChange(accountId);
  const touched = { inputId, fromMs: firstMs, toMs: lastMs };
  yield* markDependants(dialect, accountId, [touched], "removal", nowMs());
}

/** For use inside a write. `nextMs`: beginning of the next part; null after the last. */
function* removePart(
  id: number,
  lowMs: number,
  endMs: number,
  removedAtOnce: number,
): Steps<{ readonly held: Holding; readonly nextMs: number | null }> {
  const end = yield* row(
    `SELECT at_ms FROM point WHERE ${PERIOD} ORDER BY at_ms LIMIT 1 OFFSET ?`,
    id,
    lowMs,
    endMs,
    removedAtOnce,
  );
  const highMs = end === undefined ? endMs : Number(end["at_ms"]);
  const held = yield* holdingOf(id, lowMs, highMs);
  for (const table of ["point_version", "point"])
    yield* change(`DELETE FROM ${table} WHERE ${PERIOD}`, id, lowMs, highMs);
  yield* removeFromBlocks(id, lowMs, highMs - 1);
  return { held, nextMs: end === undefined ? null : highMs };
}

function* holdingOf(id: number, fromMs: number, toMs: number): Steps<Holding> {
  const held = yield* row(
    `SELECT count(*) AS points, min(at_ms) AS first, max(at_ms) AS last FROM point WHERE ${PERIOD}`,
    id,
    fromMs,
    toMs,
  );
  const versions = yield* row(`SELECT count(*) AS total FROM point_version WHERE ${PERIOD}`, id, fromMs, toMs);
  const blocks = yield* heldInBlocks(id, fromMs, toMs - 1);
  const dates = [number(held?.["first"]), number(held?.["last"]), blocks.firstMs, blocks.lastMs];
  const known = dates.filter((date) => date !== null);
  return {
    points: Number(held?.["points"]) + blocks.points,
    versions: Number(versions?.["total"]),
    firstMs: known.length === 0 ? null : Math.min(...known),
    lastMs: known.length === 0 ? null : Math.max(...known),
  };
}
