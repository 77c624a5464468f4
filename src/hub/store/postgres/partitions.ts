/**
 * Partitions of the tables of points: one per month between 1990 and 2100, created when its first point
 * arrives. They are created on a connection of their own and attached, which waits neither for readers nor
 * for writers. When the tables are not partitioned (a hypertable of TimescaleDB, for example), that extension
 * creates what it needs.
 */
import type pg from "pg";
import { systemCode } from "#core/errors.ts";
import { type Sql, transact } from "./database.ts";

type Table = "point" | "point_version";

/** As in `migrations/001-store.sql`. */
const FIRST_MS = Date.UTC(1990, 0);
const END_MS = Date.UTC(2100, 0);
const LOCK = 4_713_002;

export interface Partitions {
  /** Creates the missing partitions for points of these dates. */
  ensure(table: Table, dates: Iterable<number>): Promise<void>;
  /** Discards the cache: an administrator may have dropped or detached partitions. */
  forget(): void;
}

export interface Month {
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
    forget() {
      for (const months of Object.values(known)) months.clear();
    },
  };
}

const CHECK_VIOLATION = "23514";

/** True when a point found no partition; the tables of points have no other checks. */
export function isPartitionMissing(thrown: unknown): boolean {
  return systemCode(thrown) === CHECK_VIOLATION;
}

function monthsOf(dates: Iterable<number>): Month[] {
  const months = new Map<number, Month>();
  let month = BEFORE;
  for (const ms of dates) {
    if (ms >= month.fromMs && ms < month.endMs) continue;
    month = monthOf(ms);
    if (month !== BEFORE && month !== AFTER) months.set(month.fromMs, month);
  }
  return [...months.values()];
}

const BEFORE: Month = { fromMs: Number.NEGATIVE_INFINITY, endMs: FIRST_MS };
const AFTER: Month = { fromMs: END_MS, endMs: Number.POSITIVE_INFINITY };

/** All points before 1990 count as one month, and so do those from 2100 on. */
export function monthOf(ms: number): Month {
  if (ms < FIRST_MS) return BEFORE;
  if (ms >= END_MS) return AFTER;
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { fromMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
}

async function isPartitioned(pool: pg.Pool, table: Table): Promise<boolean> {
  const { rows } = await pool.query("SELECT relkind FROM pg_class WHERE oid = $1::regclass", [table]);
  return rows[0]?.relkind === "p";
}

/**
 * Does nothing when a partition covers the month already, even one that an administrator merged from several.
 */
function attach(pool: pg.Pool, table: Table, { fromMs, endMs }: Month): Promise<void> {
  return transact(pool, async (sql) => {
    await sql.run("SET LOCAL lock_timeout = '10s'");
    await sql.get("SELECT pg_advisory_xact_lock(?)", LOCK);
    const held = await partitionsOf(sql, table);
    if (held.some((one) => one.fromMs <= fromMs && one.endMs >= endMs)) return;
    const name = await freeName(sql, `${table}_${new Date(fromMs).toISOString().slice(0, 7).replace("-", "_")}`);
    await sql.run(`CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
    await sql.run(`ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM (${fromMs}) TO (${endMs})`);
  });
}

/** A partition that was detached and not dropped keeps its name, and its points. */
async function freeName({ get }: Sql, name: string): Promise<string> {
  for (let count = 1; ; count += 1) {
    const free = count === 1 ? name : `${name}_${count}`;
    const row = await get("SELECT to_regclass(?) IS NULL AS is_free", free);
    if (row?.["is_free"] === true) return free;
  }
}

/** The bounds of the partitions of a table, in order of date; empty for a table that is not partitioned. */
export async function partitionsOf({ all }: Pick<Sql, "all">, table: Table): Promise<readonly Month[]> {
  const rows = await all(
    `SELECT (regexp_match(bounds, 'FROM \\(''(-{0,1}[0-9]+)''\\)'))[1] AS low,
      (regexp_match(bounds, 'TO \\(''(-{0,1}[0-9]+)''\\)'))[1] AS high
      FROM (SELECT pg_get_expr(partition.relpartbound, partition.oid) AS bounds FROM pg_inherits
        JOIN pg_class AS partition ON partition.oid = inhrelid
        WHERE inhparent = CAST(CAST(? AS TEXT) AS regclass) AND NOT inhdetachpending) AS held`,
    table,
  );
  return rows
    .map(({ low, high }) => ({
      fromMs: low === null ? Number.NEGATIVE_INFINITY : Number(low),
      endMs: high === null ? Number.POSITIVE_INFINITY : Number(high),
    }))
    .sort((a, b) => a.fromMs - b.fromMs);
}
