/**
 * Writes of an account's structure. While a form or a file of master data changes it in slices, the account is held:
 * other writes of its structure, and of values of forms, wait for the last slice.
 *
 * The many entities that a file of master data creates are added in slices, between which other accounts write. What a
 * held account has beyond its last ids of the beginning is of the file: unfinished, it is removed again.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { nowMs } from "./calculated/marks.ts";
import { change, type Database, row, rows, type Steps, type StoreDialect } from "./database.ts";
import { noteChange } from "./source-zones.ts";
import type { StructureEntity } from "./store.ts";
import { type CreatedStructure, createSome, type StructurePlan } from "./structure-plan.ts";

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
    throw new StructureHeld("a form or a file of master data changes much of the account");
}

/** Grows with each change of the account's structure. */
export function* changesOf(accountId: number): Steps<number> {
  return Number((yield* row("SELECT changes FROM structure_change WHERE account_id = ?", accountId))?.["changes"]);
}

export function* heldText(accountId: number, dialect?: StoreDialect): Steps<string | null> {
  const lock = dialect?.forUpdate("structure_change") ?? "";
  const found = yield* row(`SELECT held FROM structure_change WHERE account_id = ?${lock}`, accountId);
  return (found?.["held"] ?? null) as string | null;
}

/** For use inside a write. Null: the account is free again. */
export function* putHeld(accountId: number, held: string | null): Steps<void> {
  yield* change("UPDATE structure_change SET held = ? WHERE account_id = ?", held, accountId);
}

/** Rows of a slice: some milliseconds of the writer. */
const SLICE_ROWS = 300;
/** A creation that has added nothing for so long is given up by its thread. */
const SILENCE_MS = 60_000;

interface HeldCreation {
  readonly key: string;
  /** The last ids of the account before. */
  readonly created: Readonly<Record<StructureEntity, number>>;
  /** When its last slice was written. */
  readonly atMs: number;
}

const LISTS = ["sites", "sources", "variables"] as const;

const countOf = (plan: StructurePlan) => LISTS.reduce((count, list) => count + plan[list].length, 0);

export function createsMany(plan: StructurePlan): boolean {
  return countOf(plan) > SLICE_ROWS;
}

export function createsAny(plan: StructurePlan): boolean {
  return countOf(plan) > 0;
}

/**
 * `begin` says whether the plan still fits, and what `finish` returns does the rest of it in the last write; null: it
 * no longer fits, and nothing is created.
 */
export async function createInSlices<T>(
  database: Database,
  accountId: number,
  plan: StructurePlan,
  { begin, finish }: { begin(): Steps<boolean>; finish(created: CreatedStructure): () => Steps<T | null> },
): Promise<T | null> {
  const held = await writeStructure(database, accountId, function* (): Steps<HeldCreation | null> {
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
  const whileHeld = <R>(work: () => Steps<R | null>) =>
    database.write(function* (): Steps<R | null> {
      yield* database.dialect.holdLane(accountId);
      if (!(yield* isHeldBy(database, accountId, held))) return null;
      return yield* work();
    });
  try {
    const ids: Record<(typeof LISTS)[number], number[]> = { sites: [], sources: [], variables: [] };
    for (const list of LISTS)
      for (let from = 0; from < plan[list].length; from += SLICE_ROWS) {
        const beginMs = performance.now();
        const added = await whileHeld(function* () {
          yield* putHeld(accountId, JSON.stringify({ ...held, atMs: nowMs() }));
          return yield* createSome(accountId, plan, list, from, from + SLICE_ROWS, ids);
        });
        // Another hub took it for given up.
        if (added === null) return null;
        ids[list].push(...added);
        await pause(performance.now() - beginMs);
      }
    const last = finish(ids);
    const done = await whileHeld(function* () {
      const finished = yield* last();
      if (finished === null) return null;
      yield* noteChange(accountId);
      yield* putHeld(accountId, null);
      return { finished };
    });
    if (done !== null) return done.finished;
  } catch (thrown) {
    // Where the store has a fault, the hub does it later.
    await undoCreation(database, accountId, held).catch(() => undefined);
    throw thrown;
  }
  await undoCreation(database, accountId, held);
  return null;
}

/** Removes what files created that are not finished. `isAll`: at the start, when no thread works on one. */
export async function undoCreations(database: Database, isAll: boolean): Promise<void> {
  const found = await database.ask(() => rows("SELECT account_id, held FROM structure_change WHERE held IS NOT NULL"));
  for (const one of found) {
    const held = JSON.parse(String(one["held"])) as Partial<HeldCreation>;
    if (held.created === undefined || !(isAll || Number(held.atMs) < nowMs() - SILENCE_MS)) continue;
    await undoCreation(database, Number(one["account_id"]), held as HeldCreation);
  }
}

/** Variables that got points meanwhile stay, with what they are in. */
const UNUSED: Readonly<Record<StructureEntity, string>> = {
  variable: `NOT EXISTS (SELECT 1 FROM point WHERE variable_id = variable.id)
    AND NOT EXISTS (SELECT 1 FROM point_block WHERE variable_id = variable.id)`,
  source: "NOT EXISTS (SELECT 1 FROM variable WHERE source_id = source.id)",
  site: "NOT EXISTS (SELECT 1 FROM source WHERE site_id = site.id)",
};

async function undoCreation(database: Database, accountId: number, held: HeldCreation): Promise<void> {
  const slice = function* (): Steps<boolean> {
    yield* database.dialect.holdLane(accountId);
    if (!(yield* isHeldBy(database, accountId, held))) return true;
    for (const table of ["variable", "source", "site"] as const) {
      const some = `SELECT id FROM ${table} WHERE account_id = ? AND id > ? AND ${UNUSED[table]} LIMIT ${SLICE_ROWS}`;
      const sql = `DELETE FROM ${table} WHERE id IN (${some})`;
      if ((yield* change(sql, accountId, held.created[table])) > 0) return false;
    }
    yield* noteChange(accountId);
    yield* putHeld(accountId, null);
    return true;
  };
  for (;;) {
    const beginMs = performance.now();
    if (await database.write(slice)) return;
    await pause(performance.now() - beginMs);
  }
}

function* isHeldBy({ dialect }: Database, accountId: number, { key }: HeldCreation): Steps<boolean> {
  const held: HeldCreation | null = JSON.parse((yield* heldText(accountId, dialect)) ?? "null");
  return held?.key === key;
}
