/**
 * Partitions of the tables of points: one a month between 1990 and 2100, made when a point of it comes. They are made on a connection of
 * their own and attached, which waits neither for readers nor for writers. When the tables are no partitioned ones (a hypertable of
 * TimescaleDB, say), that extension makes what it needs.
 */
import type pg from "pg";
import { transact } from "./database.ts";

type Table = "point" | "point_version";

/** As in `migrations/001-initial.sql`. */
const FIRST_MS = Date.UTC(1990, 0);
const END_MS = Date.UTC(2100, 0);
const LOCK = 4_713_002;

export interface Partitions {
  /** Makes what is missing for points of these dates. */
  ensure(table: Table, dates: Iterable<number>): Promise<void>;
}

interface Month {
  readonly fromMs: number;
  readonly endMs: number;
}

export function createPartitions(pool: pg.Pool): Partitions {
  const known: Record<Table, Set<number>> = { point: new Set(), point_version: new Set() };
  const partitioned = new Map<Table, boolean>();
  return {
    async ensure(table, dates) {
      const missing = monthsOf(dates).filter(({ fromMs }) => !known[table].has(fromMs));
      if (missing.length === 0) return;
      if (!partitioned.has(table)) partitioned.set(table, await isPartitioned(pool, table));
      for (const month of missing) {
        if (partitioned.get(table) === true) await attach(pool, table, month);
        known[table].add(month.fromMs);
      }
    },
  };
}

function monthsOf(dates: Iterable<number>): Month[] {
  const months = new Map<number, Month>();
  let month: Month = { fromMs: Number.NEGATIVE_INFINITY, endMs: FIRST_MS };
  for (const ms of dates) {
    if (ms >= month.fromMs && ms < month.endMs) continue;
    month = monthOf(ms);
    if (month.fromMs >= FIRST_MS && month.endMs <= END_MS) months.set(month.fromMs, month);
  }
  return [...months.values()];
}

function monthOf(ms: number): Month {
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { fromMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
}

async function isPartitioned(pool: pg.Pool, table: Table): Promise<boolean> {
  const { rows } = await pool.query("SELECT relkind FROM pg_class WHERE oid = $1::regclass", [table]);
  return rows[0]?.relkind === "p";
}

function attach(pool: pg.Pool, table: Table, { fromMs, endMs }: Month): Promise<void> {
  const name = `${table}_${new Date(fromMs).toISOString().slice(0, 7).replace("-", "_")}`;
  return transact(pool, async ({ get, run }) => {
    await run("SET LOCAL lock_timeout = '10s'");
    await get("SELECT pg_advisory_xact_lock(?)", LOCK);
    const made = await get("SELECT to_regclass(?) IS NOT NULL AS made", name);
    if (made?.["made"] === true) return;
    await run(`CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
    await run(`ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM (${fromMs}) TO (${endMs})`);
  });
}
