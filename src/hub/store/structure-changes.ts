/** Changes and removals of structure, each in one transaction that first waits for the account's writer of points. */
import { isDeepStrictEqual } from "node:util";
import type { VariableBody } from "../../wire/index.ts";
import { definitionFacts, type JudgeDefinition, putDefinition, withoutPlaces } from "./calculated/definitions.ts";
import {
  markDependants,
  markDue,
  markReaders,
  markRezoned,
  nowMs,
  WHOLE_HISTORY,
  zonesOf,
} from "./calculated/marks.ts";
import { usersOf } from "./calculated/readers.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import { aboutSource, aboutVariable, addChangeEvent, addRemovalEvents, type Below } from "./events/structure-events.ts";
import { clearReferences, heldForms, putValues, zoneOfSource } from "./form-values.ts";
import { forgetRollups } from "./rollups/watch.ts";
import type { Removal, StoredSite, StoredSource, StoredVariable, StructureEntity, StructureStore } from "./store.ts";
import { writeStructure } from "./structure-hold.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  text,
  variableColumns,
  variableOf,
} from "./structure-rows.ts";

type Changes = Pick<StructureStore, "changeSite" | "changeSource" | "changeVariable" | "remove">;

export function structureChanges(database: Database): Changes {
  const { dialect } = database;
  const owned = (entity: StructureEntity, id: number, accountId: number) =>
    row(`SELECT * FROM ${entity} WHERE id = ? AND account_id = ?${dialect.forUpdate(entity)}`, id, accountId);
  const changing = <T>(accountId: number, work: () => Steps<T>) => writeStructure(database, accountId, work);
  return {
    changeSite: (accountId, id, changed) =>
      changing(accountId, function* (): Steps<StoredSite | "missing"> {
        const found = yield* owned("site", id, accountId);
        if (found === undefined) return "missing";
        const zone = String(found["time_zone_id"]);
        const held = yield* heldForms(dialect, accountId, "site", id, zone);
        const { body, values } = changed(siteOf(found), held);
        yield* updateZoned(dialect, accountId, "site", id, siteColumns(body));
        if (!isDeepStrictEqual(siteOf(found).clientData, body.clientData ?? null))
          yield* markReaders(dialect, accountId, { entity: "site", ids: [id], ...WHOLE_HISTORY });
        yield* putValues(dialect, accountId, "site", id, values);
        const after = siteOf((yield* owned("site", id, accountId)) ?? found);
        yield* addChangeEvent(accountId, siteOf(found), after, { kind: "site", id, name: after.name, siteId: id });
        return after;
      }),
    changeSource: (accountId, id, changed) =>
      changing(accountId, function* (): Steps<StoredSource | "missing" | "no-parent"> {
        const found = yield* ownedSource(dialect, id, accountId);
        if (found === undefined) return "missing";
        const zone = yield* zoneOfSource(Number(found["site_id"]), text(found["time_zone_id"]));
        const held = yield* heldForms(dialect, accountId, "source", id, zone);
        const { body, values } = changed(sourceOf(found), held);
        if ((yield* owned("site", body.siteId, accountId)) === undefined) return "no-parent";
        yield* updateZoned(dialect, accountId, "source", id, sourceColumns(body));
        if (!isDeepStrictEqual(sourceOf(found).clientData, body.clientData ?? null))
          yield* markReaders(dialect, accountId, { entity: "source", ids: [id], ...WHOLE_HISTORY });
        yield* putValues(dialect, accountId, "source", id, values);
        const after = sourceOf((yield* ownedSource(dialect, id, accountId)) ?? found);
        yield* addChangeEvent(accountId, sourceOf(found), after, aboutSource(after));
        return after;
      }),
    changeVariable: (accountId, id, changed, judge) =>
      changing(accountId, function* (): Steps<StoredVariable | "missing" | "no-parent"> {
        const found = yield* owned("variable", id, accountId);
        if (found === undefined) return "missing";
        const { points } = yield* pointsOf(dialect, [id]);
        const current = variableOf(found);
        const body = changed(current, points);
        if ((yield* owned("source", body.sourceId, accountId)) === undefined) return "no-parent";
        yield* update("variable", id, variableColumns(body));
        if (judge !== undefined) yield* changeDefinition(dialect, { accountId, current, body }, judge);
        // Formulas see its values in another unit than before.
        if (body.unitId !== current.unitId)
          yield* markDependants(dialect, accountId, [{ inputId: id, ...WHOLE_HISTORY }], "definition", nowMs());
        const after = variableOf((yield* owned("variable", id, accountId)) ?? found);
        yield* addChangeEvent(accountId, current, after, aboutVariable(after));
        return after;
      }),
    remove: (accountId, entity, id, withPoints) =>
      changing(accountId, function* (): Steps<Removal> {
        const found = yield* owned(entity, id, accountId);
        if (found === undefined) return { kind: "missing" };
        const below = yield* belowOf(entity, id);
        const removal = yield* removeBelow(dialect, accountId, entity, id, below, withPoints);
        if (removal.kind === "removed") yield* addRemovalEvents(accountId, entity, found, removal, below);
        return removal;
      }),
  };
}

/** The zone is one of the columns, or comes from the site that they name; most changes of a site leave it as it is. */
function* updateZoned(
  dialect: StoreDialect,
  accountId: number,
  entity: "site" | "source",
  id: number,
  columns: Parameters<typeof update>[2],
): Steps<void> {
  const isSame =
    entity === "site" &&
    (yield* row("SELECT time_zone_id FROM site WHERE id = ?", id))?.["time_zone_id"] === columns["time_zone_id"];
  const zones = isSame ? new Map<number, string>() : yield* zonesOf(dialect, accountId, entity, [id]);
  yield* update(entity, id, columns);
  yield* markRezoned(dialect, accountId, zones);
}

interface VariableChange {
  readonly accountId: number;
  readonly current: StoredVariable;
  readonly body: VariableBody;
}

/** A definition that stays as it is is not judged again, so that a name can be changed whatever became of inputs. */
function* changeDefinition(
  dialect: StoreDialect,
  { accountId, current, body: { calculated, sourceId } }: VariableChange,
  judge: JudgeDefinition,
): Steps<void> {
  const before = current.calculated ?? undefined;
  if (isDeepStrictEqual(before, calculated === undefined ? undefined : withoutPlaces(calculated))) {
    // The zone of another source may cut days and periods otherwise.
    const whole = { variableId: current.id, inputId: null, ...WHOLE_HISTORY, cause: "definition" as const };
    if (before !== undefined && sourceId !== current.sourceId) yield* markDue(dialect, accountId, [whole], nowMs());
    return;
  }
  const place = { accountId, variableId: current.id, sourceId };
  const plan = calculated === undefined ? null : judge(yield* definitionFacts(dialect, place, calculated), calculated);
  yield* putDefinition(dialect, accountId, current.id, plan, nowMs());
}

/** For use inside a write: no other transaction changes or removes the row until this one ends. */
export function ownedSource(dialect: StoreDialect, id: number, accountId: number): Steps<Row | undefined> {
  const sql = `SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE source.id = ? AND source.account_id = ?`;
  return row(`${sql}${dialect.forUpdate("source")}`, id, accountId);
}

const VARIABLES = `SELECT variable.id, variable.name, variable.source_id, source.site_id FROM variable
  JOIN source ON source.id = variable.source_id`;
const SOURCES_BELOW = "SELECT id, name, site_id FROM source";

/** The variables and sources below an entity, itself included. */
const BELOW: Readonly<Record<StructureEntity, { readonly variables: string; readonly sources: string | null }>> = {
  site: {
    variables: `${VARIABLES} WHERE source.site_id = ? ORDER BY variable.id`,
    sources: `${SOURCES_BELOW} WHERE site_id = ? ORDER BY id`,
  },
  source: {
    variables: `${VARIABLES} WHERE variable.source_id = ? ORDER BY variable.id`,
    sources: `${SOURCES_BELOW} WHERE id = ?`,
  },
  variable: { variables: `${VARIABLES} WHERE variable.id = ?`, sources: null },
};

function* belowOf(entity: StructureEntity, id: number): Steps<Below> {
  const { variables, sources } = BELOW[entity];
  return {
    variables: yield* rows(variables, id),
    sources: sources === null ? [] : yield* rows(sources, id),
  };
}

function* removeBelow(
  dialect: StoreDialect,
  accountId: number,
  entity: StructureEntity,
  id: number,
  below: Below,
  withPoints: boolean,
): Steps<Removal> {
  const { among } = dialect;
  const ids = below.variables.map((one) => Number(one["id"]));
  const sourceIds = below.sources.map((one) => Number(one["id"]));
  const holders = [
    ["source", sourceIds],
    ["site", entity === "site" ? [id] : []],
  ] as const;
  const users = yield* usersOf(dialect, accountId, ids, holders);
  if (users.length > 0) return { kind: "in-use", users };
  const { points, variables: holding } = yield* pointsOf(dialect, ids);
  if (points > 0 && !withPoints) return { kind: "holds-points", variables: holding, points };
  for (const table of ["point_version", "point", "point_block"])
    yield* change(`DELETE FROM ${table} WHERE ${among("variable_id")}`, ids);
  yield* forgetRollups(dialect, ids);
  // One calculated variable may read another one, which goes with it.
  yield* change(`DELETE FROM calculated_input WHERE ${among("calculated_id")}`, ids);
  const variables = yield* change(`DELETE FROM variable WHERE ${among("id")}`, ids);
  // Slices go with their site or source.
  yield* change(`DELETE FROM source WHERE ${among("id")}`, sourceIds);
  if (entity === "site") yield* change("DELETE FROM site WHERE id = ?", id);
  if (sourceIds.length > 0) yield* clearReferences(dialect, accountId, "source", sourceIds);
  if (entity === "site") yield* clearReferences(dialect, accountId, "site", [id]);
  return { kind: "removed", sources: sourceIds.length, variables, points };
}

/** Of all these variables, and how many of them have any. */
function* pointsOf(
  { among }: StoreDialect,
  ids: readonly number[],
): Steps<{ readonly points: number; readonly variables: number }> {
  const held = yield* row(
    `SELECT coalesce(sum(points), 0) AS points, count(DISTINCT variable_id) AS variables FROM (
      SELECT variable_id, count(*) AS points FROM point WHERE ${among("variable_id")} GROUP BY variable_id
      UNION ALL SELECT variable_id, points FROM point_block WHERE ${among("variable_id")}) AS held`,
    ids,
    ids,
  );
  return { points: Number(held?.["points"]), variables: Number(held?.["variables"]) };
}
