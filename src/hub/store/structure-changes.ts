/** Changes and removals of structure, each in one transaction that first waits for the account's writer of points. */
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import { noteChange } from "./source-zones.ts";
import type { Removal, StoredSite, StoredSource, StoredVariable, StructureEntity, StructureStore } from "./store.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  variableColumns,
  variableOf,
} from "./structure-rows.ts";

type Changes = Pick<StructureStore, "changeSite" | "changeSource" | "changeVariable" | "remove">;

export function structureChanges(database: Database): Changes {
  const { dialect } = database;
  const owned = (entity: StructureEntity, id: number, accountId: number) =>
    row(`SELECT * FROM ${entity} WHERE id = ? AND account_id = ?${dialect.forUpdate(entity)}`, id, accountId);
  const changing = <T>(accountId: number, work: () => Steps<T>): Promise<T> =>
    database.write(function* () {
      yield* dialect.holdLane(accountId);
      yield* noteChange(accountId);
      return yield* work();
    });
  return {
    changeSite: (accountId, id, changed) =>
      changing(accountId, function* (): Steps<StoredSite | "missing"> {
        const found = yield* owned("site", id, accountId);
        if (found === undefined) return "missing";
        yield* update("site", id, siteColumns(changed(siteOf(found))));
        return siteOf((yield* owned("site", id, accountId)) ?? found);
      }),
    changeSource: (accountId, id, changed) =>
      changing(accountId, function* (): Steps<StoredSource | "missing" | "no-parent"> {
        const found = yield* ownedSource(dialect, id, accountId);
        if (found === undefined) return "missing";
        const body = changed(sourceOf(found));
        if ((yield* owned("site", body.siteId, accountId)) === undefined) return "no-parent";
        yield* update("source", id, sourceColumns(body));
        return sourceOf((yield* ownedSource(dialect, id, accountId)) ?? found);
      }),
    changeVariable: (accountId, id, changed) =>
      changing(accountId, function* (): Steps<StoredVariable | "missing" | "no-parent"> {
        const found = yield* owned("variable", id, accountId);
        if (found === undefined) return "missing";
        const held = yield* row("SELECT count(*) AS total FROM point WHERE variable_id = ?", id);
        const body = changed(variableOf(found), Number(held?.["total"]));
        if ((yield* owned("source", body.sourceId, accountId)) === undefined) return "no-parent";
        yield* update("variable", id, variableColumns(body));
        return variableOf((yield* owned("variable", id, accountId)) ?? found);
      }),
    remove: (accountId, entity, id, withPoints) =>
      changing(accountId, function* (): Steps<Removal> {
        if ((yield* owned(entity, id, accountId)) === undefined) return { kind: "missing" };
        return yield* removeBelow(dialect, entity, id, withPoints);
      }),
  };
}

/** Whether the parent belongs to the account; it is not removed until the transaction ends. */
export function* isOwned(
  { forKeyShare }: StoreDialect,
  table: "site" | "source",
  id: number,
  accountId: number,
): Steps<boolean> {
  const sql = `SELECT 1 FROM ${table} WHERE id = ? AND account_id = ?${forKeyShare}`;
  return (yield* row(sql, id, accountId)) !== undefined;
}

/** For use inside a write: no other transaction changes or removes the row until this one ends. */
export function ownedSource(dialect: StoreDialect, id: number, accountId: number): Steps<Row | undefined> {
  const sql = `SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE source.id = ? AND source.account_id = ?`;
  return row(`${sql}${dialect.forUpdate("source")}`, id, accountId);
}

/** The variables and sources below an entity, itself included. */
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

function* removeBelow(
  { among }: StoreDialect,
  entity: StructureEntity,
  id: number,
  withPoints: boolean,
): Steps<Removal> {
  const below = BELOW[entity];
  const ids = (yield* rows(below.variables, id)).map((one) => Number(one["id"]));
  const held = yield* row(
    `SELECT count(*) AS points, count(DISTINCT variable_id) AS variables FROM point WHERE ${among("variable_id")}`,
    ids,
  );
  const points = Number(held?.["points"]);
  if (points > 0 && !withPoints) return { kind: "holds-points", variables: Number(held?.["variables"]), points };
  for (const table of ["point_version", "point"])
    yield* change(`DELETE FROM ${table} WHERE ${among("variable_id")}`, ids);
  const variables = yield* change(`DELETE FROM variable WHERE ${among("id")}`, ids);
  const sources = yield* change(`DELETE FROM source WHERE id IN (${below.sources})`, id);
  if (entity === "site") yield* change("DELETE FROM site WHERE id = ?", id);
  return { kind: "removed", sources, variables, points };
}
