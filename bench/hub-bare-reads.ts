/** The baselines of reads: the same answers by SQL alone, without HTTP, zones and JSON, in the process of the bench. */
import { DatabaseSync } from "node:sqlite";
import { BEGIN_MS } from "./hub-data.ts";
import { connect } from "./hub-postgres-data.ts";

export interface BareReads {
  /** The sum of each month of the year, for each variable. */
  sums(variableIds: readonly number[]): Promise<void>;
  /** Date and value of the latest point of each variable. */
  latest(variableIds: readonly number[]): Promise<void>;
  /** Rollups that the hub has stored. */
  rollups(): Promise<number>;
  close(): Promise<void>;
}

const ROLLUPS = "SELECT count(*) AS total FROM rollup";

export type BenchStore =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

const MONTHS = Array.from({ length: 12 }, (_, month) => {
  const year = new Date(BEGIN_MS).getUTCFullYear();
  return [Date.UTC(year, month), Date.UTC(year, month + 1)] as const;
});

export async function openBareReads(store: BenchStore): Promise<BareReads> {
  return store.kind === "sqlite" ? onSqlite(store.path) : await onPostgres(store.url);
}

function onSqlite(path: string): BareReads {
  const database = new DatabaseSync(path, { readOnly: true });
  database.exec("PRAGMA cache_size = -32000");
  const sum = database.prepare("SELECT sum(value) FROM point WHERE variable_id = ? AND at_ms >= ? AND at_ms < ?");
  const last = database.prepare("SELECT at_ms, value FROM point WHERE variable_id = ? ORDER BY at_ms DESC LIMIT 1");
  return {
    async sums(variableIds) {
      for (const id of variableIds) for (const [fromMs, endMs] of MONTHS) sum.get(id, fromMs, endMs);
    },
    async latest(variableIds) {
      for (const id of variableIds) last.get(id);
    },
    async rollups() {
      return Number(database.prepare(ROLLUPS).get()?.["total"]);
    },
    async close() {
      database.close();
    },
  };
}

async function onPostgres(url: string): Promise<BareReads> {
  const client = await connect(url);
  const [begins, ends] = [MONTHS.map(([fromMs]) => fromMs), MONTHS.map(([, endMs]) => endMs)];
  const sums = `SELECT id, from_ms, (SELECT sum(value) FROM point
      WHERE variable_id = id AND at_ms >= from_ms AND at_ms < end_ms)
    FROM unnest($1::bigint[]) AS id, unnest($2::bigint[], $3::bigint[]) AS month(from_ms, end_ms)`;
  const latest = `SELECT id, last.* FROM unnest($1::bigint[]) AS id CROSS JOIN LATERAL
    (SELECT at_ms, value FROM point WHERE variable_id = id ORDER BY at_ms DESC LIMIT 1) AS last`;
  return {
    async sums(variableIds) {
      await client.query(sums, [variableIds, begins, ends]);
    },
    async latest(variableIds) {
      await client.query(latest, [variableIds]);
    },
    async rollups() {
      const { rows } = await client.query<{ total: string }>(ROLLUPS);
      return Number(rows[0]?.total);
    },
    close: () => client.end(),
  };
}
