/** Changes and removals of structure, each in one transaction that first waits for the account's writer of points. */
import type pg from "pg";
import type { SqlValue } from "../filter-sql.ts";
import type { Removal, StructureEntity, StructureStore } from "../store.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  variableColumns,
  variableOf,
} from "../structure-rows.ts";
import { type Row, type Sql, transact } from "./database.ts";
import { holdLane, noteChange } from "./lanes.ts";

type Changes = Pick<StructureStore, "changeSite" | "changeSource" | "changeVariable" | "remove">;

export function structureChanges(pool: pg.Pool): Changes {
  const changing = <T>(accountId: number, work: (sql: Sql) => Promise<T>): Promise<T> =>
    transact(pool, async (sql) => {
      await holdLane(sql, accountId);
      await noteChange(sql, accountId);
      return work(sql);
    });
  return {
    changeSite: (accountId, id, change) =>
      changing(accountId, async (sql) => {
        const row = await owned(sql, "site", id, accountId);
        if (row === undefined) return "missing";
        await update(sql, "site", id, siteColumns(change(siteOf(row))));
        return siteOf((await owned(sql, "site", id, accountId)) ?? row);
      }),
    changeSource: (accountId, id, change) =>
      changing(accountId, async (sql) => {
        const row = await ownedSource(sql, id, accountId);
        if (row === undefined) return "missing";
        const body = change(sourceOf(row));
        if ((await owned(sql, "site", body.siteId, accountId)) === undefined) return "no-parent";
        await update(sql, "source", id, sourceColumns(body));
        return sourceOf((await ownedSource(sql, id, accountId)) ?? row);
      }),
    changeVariable: (accountId, id, change) =>
      changing(accountId, async (sql) => {
        const row = await owned(sql, "variable", id, accountId);
        if (row === undefined) return "missing";
        const held = await sql.get("SELECT count(*) AS total FROM point WHERE variable_id = ?", id);
        const body = change(variableOf(row), Number(held?.["total"]));
        if ((await owned(sql, "source", body.sourceId, accountId)) === undefined) return "no-parent";
        await update(sql, "variable", id, variableColumns(body));
        return variableOf((await owned(sql, "variable", id, accountId)) ?? row);
      }),
    remove: (accountId, entity, id, withPoints) =>
      changing(accountId, async (sql) =>
        (await owned(sql, entity, id, accountId)) === undefined
          ? { kind: "missing" }
          : removeBelow(sql, entity, id, withPoints),
      ),
  };
}

/** Nobody else changes or removes the row until the transaction ends. */
function owned(
  { get }: Sql,
  entity: StructureEntity,
  id: number,
  accountId: number,
): Promise<Row | undefined> {
  return get(`SELECT * FROM ${entity} WHERE id = ? AND account_id = ? FOR UPDATE`, id, accountId);
}

function ownedSource({ get }: Sql, id: number, accountId: number): Promise<Row | undefined> {
  const sql = `SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE source.id = ? AND source.account_id = ? FOR UPDATE OF source`;
  return get(sql, id, accountId);
}

async function update(
  { run }: Sql,
  entity: StructureEntity,
  id: number,
  columns: Record<string, SqlValue | undefined>,
): Promise<void> {
  const sets = Object.keys(columns).map((name) => `${name} = ?`);
  const values = Object.values(columns).map((value) => value ?? null);
  await run(`UPDATE ${entity} SET ${sets.join(", ")} WHERE id = ?`, ...values, id);
}

/** Which variables and sources lie below an entity, itself included. */
const BELOW: Readonly<Record<StructureEntity, { readonly variables: string; readonly sources: string }>> = {
  site: {
    variables:
      "SELECT variable.id FROM variable JOIN source ON source.id = variable.source_id WHERE source.site_id = ?",
    sources: "SELECT id FROM source WHERE site_id = ?",
  },
  source: {
    variables: "SELECT id FROM variable WHERE source_id = ?",
    sources: "SELECT id FROM source WHERE id = ?",
  },
  variable: {
    variables: "SELECT id FROM variable WHERE id = ?",
    sources: "SELECT id FROM source WHERE id <> id AND id = ?",
  },
};

async function removeBelow(
  sql: Sql,
  entity: StructureEntity,
  id: number,
  withPoints: boolean,
): Promise<Removal> {
  const below = BELOW[entity];
  const ids = (await sql.all(below.variables, id)).map((row) => Number(row["id"]));
  const held = await sql.get(
    "SELECT count(*) AS points, count(DISTINCT variable_id) AS variables FROM point WHERE variable_id = ANY (?)",
    ids,
  );
  const points = Number(held?.["points"]);
  if (points > 0 && !withPoints)
    return { kind: "holds-points", variables: Number(held?.["variables"]), points };
  for (const table of ["point_version", "point"])
    await sql.run(`DELETE FROM ${table} WHERE variable_id = ANY (?)`, ids);
  const variables = await sql.run("DELETE FROM variable WHERE id = ANY (?)", ids);
  const sources = await sql.run(`DELETE FROM source WHERE id IN (${below.sources})`, id);
  if (entity === "site") await sql.run("DELETE FROM site WHERE id = ?", id);
  return { kind: "removed", sources, variables, points };
}
