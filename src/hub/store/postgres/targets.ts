/** Finds the variables that elements name, and remembers them until the structure of the account changes. */
import type { IngestEffects } from "../ingest-effects.ts";
import type { TargetQuery, VariableFacts } from "../store.ts";
import { FACT_COLUMNS, factsOf, VARIABLE_FACTS } from "../structure-rows.ts";
import { SOURCE_COLUMNS, TargetBytes, TargetCache } from "../targets.ts";
import type { Sql } from "./database.ts";

export interface Targets {
  /** Discards the cached targets of the account after a change of its structure. */
  refresh(account: Account): Promise<void>;
  find(account: Account, target: TargetQuery): Promise<VariableFacts | null>;
  written(accountId: number): TargetBytes;
}

/** On a connection that has locked the lane of the account. */
interface Account {
  readonly sql: Sql;
  readonly accountId: number;
}

/** Number of accounts with cached targets. */
const ACCOUNTS = 50;

export function createTargets(effects: IngestEffects): Targets {
  const accounts = new Map<number, { readonly changes: number; readonly cache: TargetCache }>();
  return {
    async refresh({ sql, accountId }) {
      const row = await sql.get("SELECT changes FROM structure_change WHERE account_id = ?", accountId);
      const changes = Number(row?.["changes"]);
      const known = accounts.get(accountId);
      if (known?.changes !== changes) effects.forget(accountId);
      accounts.delete(accountId);
      accounts.set(accountId, known?.changes === changes ? known : { changes, cache: new TargetCache() });
      const [oldest] = accounts.keys();
      if (accounts.size <= ACCOUNTS || oldest === undefined) return;
      accounts.delete(oldest);
      effects.forget(oldest);
    },
    written: (accountId) => accounts.get(accountId)?.cache.bytesOf(accountId) ?? new TargetBytes(),
    async find(account, target) {
      const cache = accounts.get(account.accountId)?.cache;
      const remembered = cache?.get(account.accountId, target);
      if (remembered !== undefined) return remembered;
      for (const [value, variable] of await nearVariables(account, target))
        cache?.set(account.accountId, { ...target, value }, variable);
      const learned = cache?.get(account.accountId, target);
      if (learned !== undefined) return learned;
      const found = await findVariable(account, target);
      cache?.set(account.accountId, target, found);
      return found;
    },
  };
}

/** Sources of one statement, which costs little more than that for one. */
const NEAR = 200;

/**
 * The variables of the target and of those that follow it in the order of the index, by their texts: what is pushed
 * first names its meters in about that order, and a statement for each would cost more than their points. Empty for
 * ids, and for a text that very many sources share.
 */
async function nearVariables(
  { sql, accountId }: Account,
  { by, value, mappingConfig, variableTypeId }: TargetQuery,
): Promise<ReadonlyMap<string, VariableFacts | null>> {
  const near = new Map<string, VariableFacts | null>();
  if (by === "variableId" || by === "sourceId" || typeof value !== "string") return near;
  const column = SOURCE_COLUMNS[by];
  const [config, configs] =
    mappingConfig === undefined ? ["", []] : ["AND variable.mapping_config = ?", [mappingConfig]];
  const [type, types] =
    variableTypeId === undefined ? ["", []] : ["AND variable.variable_type_id = ?", [variableTypeId]];
  const values = [accountId, value, NEAR, accountId, ...configs, ...types];
  if (!values.every(isStorable)) return near;
  const rows = await sql.all(
    `WITH near AS MATERIALIZED (SELECT source.id, ${column} AS text FROM source
        WHERE source.account_id = ? AND ${column} >= ? ORDER BY ${column} LIMIT ?)
      SELECT DISTINCT ON (near.text) near.text, (SELECT count(*) FROM near) AS total, ${FACT_COLUMNS}
      FROM near JOIN source ON source.id = near.id JOIN site ON site.id = source.site_id
      LEFT JOIN variable ON variable.source_id = source.id AND variable.account_id = ? ${config} ${type}
      ORDER BY near.text, variable.id IS NULL, source.id, variable.id`,
    ...values,
  );
  for (const row of rows) near.set(String(row["text"]), row["id"] === null ? null : factsOf(row));
  // Further sources may share the last text.
  const last = rows.at(-1);
  if (Number(last?.["total"] ?? 0) === NEAR) near.delete(String(last?.["text"]));
  return near;
}

async function findVariable(
  { sql, accountId }: Account,
  { by, value, mappingConfig, variableTypeId }: TargetQuery,
): Promise<VariableFacts | null> {
  const conditions = ["variable.account_id = ?", `${by === "variableId" ? "variable.id" : SOURCE_COLUMNS[by]} = ?`];
  const values: (string | number)[] = [accountId, value];
  const add = (condition: string, wanted: string | number) => {
    conditions.push(condition);
    values.push(wanted);
  };
  if (by !== "variableId") {
    add("source.account_id = ?", accountId);
    if (mappingConfig !== undefined) add("variable.mapping_config = ?", mappingConfig);
    if (variableTypeId !== undefined) add("variable.variable_type_id = ?", variableTypeId);
  }
  if (!values.every(isStorable)) return null;
  const row = await sql.get(
    `SELECT ${VARIABLE_FACTS} WHERE ${conditions.join(" AND ")} ORDER BY source.id, variable.id LIMIT 1`,
    ...values,
  );
  return row === undefined ? null : factsOf(row);
}

/** A text of PostgreSQL contains no NUL, and an id is a whole number: no record has any other value. */
function isStorable(value: string | number): boolean {
  return typeof value === "string" ? !value.includes("\0") : Number.isSafeInteger(value);
}
