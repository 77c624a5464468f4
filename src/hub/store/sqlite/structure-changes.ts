/** Changes and removals of structure, each in one transaction. */
import type { DatabaseSync } from "node:sqlite";
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
import { type Row, type Statements, write } from "./database.ts";
import { bound } from "./dialect.ts";

type Changes = Pick<StructureStore, "changeSite" | "changeSource" | "changeVariable" | "remove">;

export function structureChanges(database: DatabaseSync, tools: Statements): Changes {
  const { get } = tools;
  const owned = (entity: StructureEntity, id: number, accountId: number): Row | undefined =>
    get(`SELECT * FROM ${entity} WHERE id = ? AND account_id = ?`, id, accountId);
  const source = (id: number, accountId: number): Row | undefined =>
    get(
      `SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE source.id = ? AND source.account_id = ?`,
      id,
      accountId,
    );
  const update = (entity: StructureEntity, id: number, columns: Record<string, SqlValue | undefined>) => {
    const names = Object.keys(columns);
    tools.run(
      `UPDATE ${entity} SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
      ...Object.values(columns).map(bound),
      id,
    );
  };
  return {
    changeSite: (accountId, id, change) =>
      write(database, () => {
        const row = owned("site", id, accountId);
        if (row === undefined) return "missing";
        update("site", id, siteColumns(change(siteOf(row))));
        return siteOf(owned("site", id, accountId) ?? row);
      }),
    changeSource: (accountId, id, change) =>
      write(database, () => {
        const row = source(id, accountId);
        if (row === undefined) return "missing";
        const body = change(sourceOf(row));
        if (owned("site", body.siteId, accountId) === undefined) return "no-parent";
        update("source", id, sourceColumns(body));
        return sourceOf(source(id, accountId) ?? row);
      }),
    changeVariable: (accountId, id, change) =>
      write(database, () => {
        const row = owned("variable", id, accountId);
        if (row === undefined) return "missing";
        const points = Number(
          get("SELECT count(*) AS total FROM point WHERE variable_id = ?", id)?.["total"],
        );
        const body = change(variableOf(row), points);
        if (owned("source", body.sourceId, accountId) === undefined) return "no-parent";
        update("variable", id, variableColumns(body));
        return variableOf(owned("variable", id, accountId) ?? row);
      }),
    remove: (accountId, entity, id, withPoints) =>
      write(database, () =>
        owned(entity, id, accountId) === undefined
          ? { kind: "missing" }
          : removeBelow(tools, entity, id, withPoints),
      ),
  };
}

/** Which variables and sources lie below an entity, itself included. */
const BELOW: Readonly<Record<StructureEntity, { readonly variables: string; readonly sources: string }>> = {
  site: {
    variables:
      "SELECT variable.id FROM variable JOIN source ON source.id = variable.source_id WHERE source.site_id = ?",
    sources: "SELECT id FROM source WHERE site_id = ?",
  },
  source: { variables: "SELECT id FROM variable WHERE source_id = ?", sources: "SELECT ?" },
  variable: { variables: "SELECT ?", sources: "SELECT id FROM source WHERE id <> id AND id = ?" },
};

function removeBelow(
  { get, run }: Statements,
  entity: StructureEntity,
  id: number,
  withPoints: boolean,
): Removal {
  const below = BELOW[entity];
  const held = get(
    `SELECT count(*) AS points, count(DISTINCT variable_id) AS variables FROM point WHERE variable_id IN (${below.variables})`,
    id,
  );
  const points = Number(held?.["points"]);
  if (points > 0 && !withPoints)
    return { kind: "holds-points", variables: Number(held?.["variables"]), points };
  for (const table of ["point_version", "point"])
    run(`DELETE FROM ${table} WHERE variable_id IN (${below.variables})`, id);
  const variables = run(`DELETE FROM variable WHERE id IN (${below.variables})`, id).changes;
  const sources = run(`DELETE FROM source WHERE id IN (${below.sources})`, id).changes;
  if (entity === "site") run("DELETE FROM site WHERE id = ?", id);
  return { kind: "removed", sources, variables, points };
}
