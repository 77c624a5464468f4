/**
 * Writes of an account's structure. While a form, a file of master data or a removal changes it in slices, the account
 * is held: other writes of its structure, and of values of forms, wait for the last slice.
 *
 * The many entities that a file of master data creates and changes are written in slices, between which other accounts
 * write. What a held account has beyond its last ids of the beginning is of the file, and `structure_before` has how
 * the others were: an unfinished file is undone by its thread, or at the next start.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { nowMs } from "./calculated/marks.ts";
import { change, type Database, row, rows, type Steps, type StoreDialect } from "./database.ts";
import type { StructureEntity } from "./records.ts";
import { noteChange } from "./source-zones.ts";
import {
  CHANGED_LISTS,
  CREATED_LISTS,
  type CreatedStructure,
  changeExisting,
  changesBefore,
  changesInParts,
  createSome,
  NOTHING_CREATED,
  type StructurePlan,
} from "./structure-plan.ts";

/** The account was held for longer than a write waits. */
export class StructureHeld extends Error {}

const POLL_MS = 20;
const POLLS_MAX = 1_500;

/**
 * One transaction that changes structure or values of forms. `lane`: it also waits for the writer of the account's
 * points, as `holdLane` does. Throws `StructureHeld`.
 */
export async function writeStructure<T>(
  { dialect, ask, write }: Database,
  accountId: number,
  work: () => Steps<T>,
  lane = true,
): Promise<T> {
  const isHeld = () =>
    ask(function* () {
      return (yield* heldText(accountId)) !== null;
    });
  for (let polls = 0; ; ) {
    try {
      return await write(function* () {
        if (lane) yield* dialect.holdLane(accountId);
        yield* beginChange(accountId);
        return yield* work();
      });
    } catch (thrown) {
      if (!(thrown instanceof StructureHeld) || polls >= POLLS_MAX) throw thrown;
    }
    for (; polls < POLLS_MAX && (await isHeld()); polls += 1) await pause(POLL_MS);
  }
}

/** For use inside a write, before it changes anything: counts it, as `noteChange` does. */
export function* beginChange(accountId: number): Steps<void> {
  const sql = "UPDATE structure_change SET changes = changes + 1 WHERE account_id = ? AND held IS NULL";
  if ((yield* change(sql, accountId)) === 0)
    throw new StructureHeld("a form, a file of master data or a removal changes much of the account");
}

/** Grows with each change of the account's structure. */
export function* changesOf(accountId: number): Steps<number> {
  return Number((yield* row("SELECT changes FROM structure_change WHERE account_id = ?", accountId))?.["changes"]);
}

function* heldText(accountId: number, dialect?: StoreDialect): Steps<string | null> {
  const lock = dialect?.forUpdate("structure_change") ?? "";
  const found = yield* row(`SELECT held FROM structure_change WHERE account_id = ?${lock}`, accountId);
  return (found?.["held"] ?? null) as string | null;
}

/** For use inside a write: what the account is held with, where that has this key; null where it ended. */
export function* heldBy<T extends { readonly key: string }>(
  dialect: StoreDialect,
  accountId: number,
  { key }: T,
): Steps<T | null> {
  const held: T | null = JSON.parse((yield* heldText(accountId, dialect)) ?? "null");
  return held?.key === key ? held : null;
}

/** The accounts that are held, by this hub or another, running or ended. */
export async function heldAccounts(
  database: Database,
): Promise<readonly { readonly accountId: number; readonly held: object }[]> {
  const found = await database.ask(() => rows("SELECT account_id, held FROM structure_change WHERE held IS NOT NULL"));
  return found.map((one) => ({ accountId: Number(one["account_id"]), held: JSON.parse(String(one["held"])) }));
}

/** How often what others change meanwhile is judged again. */
const TRIES_MAX = 5;

/** Tries until there is an answer; null: the structure has changed since it was judged. Throws `StructureHeld`. */
export async function whileChanging<T>(attempt: () => Promise<T | null>): Promise<T> {
  for (let tries = 0; tries <= TRIES_MAX; tries += 1) {
    const answer = await attempt();
    if (answer !== null) return answer;
  }
  throw new StructureHeld("the structure of the account changes all the time");
}

/** For use inside a write. Null: the account is free again. */
export function* putHeld(accountId: number, held: string | null): Steps<void> {
  yield* change("UPDATE structure_change SET held = ? WHERE account_id = ?", held, accountId);
}

/**
 * Calls `slice` in one write after the other until it answers something; null when the signal was aborted before. The
 * writer is free as long as it was held: threads that wait for it ask for it after a while.
 */
export async function writeSlices<T extends object>(
  database: Database,
  slice: () => Steps<T | null>,
  { signal, between }: { readonly signal?: AbortSignal | undefined; readonly between?: () => void } = {},
): Promise<T | null> {
  while (signal?.aborted !== true) {
    const beginMs = performance.now();
    const done = await database.write(slice);
    if (done !== null) return done;
    between?.();
    await pause(performance.now() - beginMs);
  }
  return null;
}

/** Rows of a slice: some milliseconds of the writer. */
export const SLICE_ROWS = 300;
/** A file that has written nothing for so long is given up by its thread. */
const SILENCE_MS = 60_000;

interface HeldPlan {
  readonly key: string;
  /** The last ids of the account before. */
  readonly created: Readonly<Record<StructureEntity, number>>;
  /** When its last slice was written. */
  readonly atMs: number;
}

export function isMuch(plan: StructurePlan): boolean {
  return [...CREATED_LISTS, ...CHANGED_LISTS].reduce((count, list) => count + plan[list].length, 0) > SLICE_ROWS;
}

/**
 * Creates and changes what a plan names. `begin` says whether the plan still fits, and what `finish` returns does the
 * rest in the last write; null: it no longer fits, and all is as before.
 */
export async function applyInSlices<T>(
  database: Database,
  accountId: number,
  plan: StructurePlan,
  { begin, finish }: { begin(): Steps<boolean>; finish(created: CreatedStructure): () => Steps<T | null> },
): Promise<T | null> {
  const { dialect } = database;
  const held = await writeStructure(database, accountId, function* (): Steps<HeldPlan | null> {
    if (!(yield* begin())) return null;
    const created = {
      site: yield* lastId("site"),
      source: yield* lastId("source"),
      variable: yield* lastId("variable"),
    };
    const started = { key: randomUUID(), created, atMs: nowMs() };
    yield* putHeld(accountId, JSON.stringify(started));
    return started;
  });
  function* lastId(table: StructureEntity): Steps<number> {
    return Number((yield* row(`SELECT max(id) AS id FROM ${table} WHERE account_id = ?`, accountId))?.["id"] ?? 0);
  }
  if (held === null) return null;
  let restMs = 0;
  const whileHeld = async <R>(work: () => Steps<R | null>) => {
    await pause(restMs);
    const beginMs = performance.now();
    const done = await database.write(function* (): Steps<R | null> {
      yield* dialect.holdLane(accountId);
      if ((yield* heldBy(dialect, accountId, held)) === null) return null;
      yield* putHeld(accountId, JSON.stringify({ ...held, atMs: nowMs() }));
      return yield* work();
    });
    restMs = performance.now() - beginMs;
    return done;
  };
  try {
    const ids = { sites: [] as number[], sources: [] as number[], variables: [] as number[] };
    for (const list of CREATED_LISTS)
      for (let from = 0; from < plan[list].length; from += SLICE_ROWS) {
        const added = await whileHeld(() => createSome(accountId, plan, list, from, from + SLICE_ROWS, ids));
        // Another hub took it for given up.
        if (added === null) return null;
        ids[list].push(...added);
      }
    for (const [nth, part] of changesInParts(plan, SLICE_ROWS).entries()) {
      const isChanged = await whileHeld(function* () {
        const sql = "INSERT INTO structure_before (account_id, part, plan) VALUES (?, ?, ?)";
        yield* change(sql, accountId, nth, yield* changesBefore(dialect, part));
        yield* changeExisting(dialect, accountId, part, ids);
        return true;
      });
      if (isChanged === null) return null;
    }
    const last = finish(ids);
    const done = await whileHeld(function* () {
      const finished = yield* last();
      if (finished === null) return null;
      yield* endHold(accountId);
      return { finished };
    });
    if (done !== null) return done.finished;
  } catch (thrown) {
    // Where the store has a fault, the hub does it later.
    await undoPlan(database, accountId, held).catch(() => undefined);
    throw thrown;
  }
  await undoPlan(database, accountId, held);
  return null;
}

function* endHold(accountId: number): Steps<void> {
  yield* change("DELETE FROM structure_before WHERE account_id = ?", accountId);
  yield* noteChange(accountId);
  yield* putHeld(accountId, null);
}

/** Undoes files that are not finished. `isAll`: at the start, when no thread works on one. */
export async function undoPlans(database: Database, isAll: boolean): Promise<void> {
  for (const { accountId, held } of await heldAccounts(database)) {
    const { created, atMs } = held as Partial<HeldPlan>;
    if (created === undefined || !(isAll || Number(atMs) < nowMs() - SILENCE_MS)) continue;
    await undoPlan(database, accountId, held as HeldPlan);
  }
}

/** Variables that got points meanwhile stay, with what they are in. */
const UNUSED: Readonly<Record<StructureEntity, string>> = {
  variable: `NOT EXISTS (SELECT 1 FROM point WHERE variable_id = variable.id)
    AND NOT EXISTS (SELECT 1 FROM point_block WHERE variable_id = variable.id)`,
  source: "NOT EXISTS (SELECT 1 FROM variable WHERE source_id = source.id)",
  site: "NOT EXISTS (SELECT 1 FROM source WHERE site_id = site.id)",
};

async function undoPlan(database: Database, accountId: number, held: HeldPlan): Promise<void> {
  await writeSlices(database, function* () {
    yield* database.dialect.holdLane(accountId);
    if ((yield* heldBy(database.dialect, accountId, held)) === null) return { held };
    if (yield* changeBack(database.dialect, accountId)) return null;
    for (const table of ["variable", "source", "site"] as const) {
      const some = `SELECT id FROM ${table} WHERE account_id = ? AND id > ? AND ${UNUSED[table]} LIMIT ${SLICE_ROWS}`;
      const sql = `DELETE FROM ${table} WHERE id IN (${some})`;
      if ((yield* change(sql, accountId, held.created[table])) > 0) return null;
    }
    yield* endHold(accountId);
    return { held };
  });
}

/** A part of what was changed, the last one first; false: all is as before. */
function* changeBack(dialect: StoreDialect, accountId: number): Steps<boolean> {
  const last = "SELECT part, plan FROM structure_before WHERE account_id = ? ORDER BY part DESC LIMIT 1";
  const before = yield* row(last, accountId);
  if (before === undefined) return false;
  yield* changeExisting(dialect, accountId, JSON.parse(String(before["plan"])), NOTHING_CREATED);
  yield* change("DELETE FROM structure_before WHERE account_id = ? AND part = ?", accountId, Number(before["part"]));
  return true;
}
