/** Changes and removals of structure, in transactions that first wait for the account's writer of points. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { faultPoint } from "#core/faults.ts";
import { breath } from "#core/turns.ts";
import type { SiteBody, SourceBody, VariableBody } from "#wire/index.ts";
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
import { type Reader, type Removal, usersOf } from "./calculated/readers.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import {
  aboutSource,
  aboutVariable,
  addBelowEvents,
  addChangeEvent,
  addRemovalEvent,
  type Below,
} from "./events/structure-events.ts";
import type { FilterNode } from "./filter.ts";
import type { SqlValue } from "./filter-sql.ts";
import {
  type ChangedValues,
  clearReferences,
  type HeldForms,
  heldForms,
  type JudgeValues,
  putValues,
  zoneOfSource,
} from "./form-values.ts";
import type {
  Listing,
  Page,
  StoredSite,
  StoredSource,
  StoredVariable,
  StructureEntity,
  VariablesFilter,
} from "./records.ts";
import { forgetRollups } from "./rollups/watch.ts";
import { noteChange } from "./source-zones.ts";
import {
  changesOf,
  heldAccounts,
  heldBy,
  putHeld,
  SLICE_ROWS,
  whileChanging,
  writeSlices,
  writeStructure,
} from "./structure-hold.ts";
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

type Changes = Pick<StructureStore, "changeSite" | "changeSource" | "changeVariable" | "remove" | "resumeRemovals">;

export function structureChanges(database: Database): Changes {
  const { dialect } = database;
  const owned = (entity: StructureEntity, id: number, accountId: number) => ownedEntity(dialect, entity, id, accountId);
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
    remove: (accountId, entity, id, withPoints) => removeEntity(database, { accountId, entity, id, withPoints }),
    resumeRemovals: (signal) => continueRemovals(database, signal),
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

// ───────────────────────────────────────────────────────────── removals

const VARIABLES = `SELECT variable.id, variable.name, variable.source_id, source.site_id FROM variable
  JOIN source ON source.id = variable.source_id`;
const SOURCES_BELOW = "SELECT id, name, site_id FROM source";

/** The variables and sources below an entity, itself included. */
const BELOW: Readonly<Record<StructureEntity, { readonly variables: string; readonly sources: string | null }>> = {
  site: { variables: `${VARIABLES} WHERE source.site_id = ?`, sources: `${SOURCES_BELOW} WHERE site_id = ?` },
  source: { variables: `${VARIABLES} WHERE variable.source_id = ?`, sources: `${SOURCES_BELOW} WHERE id = ?` },
  variable: { variables: `${VARIABLES} WHERE variable.id = ?`, sources: null },
};

interface Removing {
  readonly accountId: number;
  readonly entity: StructureEntity;
  readonly id: number;
  readonly withPoints: boolean;
}

type Removed = Extract<Removal, { readonly kind: "removed" }>;

/** All that is below an entity, as it was found beside the writer. */
interface Judged extends Omit<Removed, "kind"> {
  /** Changes of the structure before. */
  readonly changes: number;
  /** Variables that hold points. */
  readonly holding: number;
  readonly users: readonly Reader[];
}

/** In `structure_change.held`: a removal that is agreed, and continued after a kill. */
interface HeldRemoval {
  readonly key: string;
  readonly removing: Removing;
  /** All that goes. */
  readonly removed: Removed;
}

type Begun = { readonly ended: Removal } | { readonly held: HeldRemoval } | { readonly changes: number };

/**
 * A few rows go in one transaction. Many are judged first, beside all writers, and then removed in slices, between
 * which other accounts write. Throws `StructureHeld`.
 */
async function removeEntity(database: Database, removing: Removing): Promise<Removal> {
  let judged: Judged | null = null;
  return await whileChanging(async () => {
    const begun = await writeStructure(database, removing.accountId, () => begin(database, removing, judged));
    if ("ended" in begun) return begun.ended;
    if ("held" in begun) return await continueRemoval(database, begun.held);
    judged = await judgeBelow(database, removing, begun.changes);
    return null;
  });
}

function* begin({ dialect }: Database, removing: Removing, judged: Judged | null): Steps<Begun> {
  const { accountId, entity, id, withPoints } = removing;
  const found = yield* ownedEntity(dialect, entity, id, accountId);
  if (found === undefined) return { ended: { kind: "missing" } };
  const below = yield* belowOf(entity, id);
  if (!isMuch(below)) return { ended: yield* removeAlone(dialect, removing, found, below) };
  const changes = yield* changesOf(accountId);
  if (judged === null || judged.changes + 1 !== changes) return { changes };
  const { users, holding: variables, points, ...counts } = judged;
  if (users.length > 0) return { ended: { kind: "in-use", users } };
  if (points > 0 && !withPoints) return { ended: { kind: "holds-points", variables, points } };
  const removed = { kind: "removed" as const, sources: counts.sources, variables: counts.variables, points };
  const held = { key: randomUUID(), removing, removed };
  yield* putHeld(accountId, JSON.stringify(held));
  return { held };
}

/** Sources or variables that are judged at a time. */
const JUDGED_ROWS = 200;

async function judgeBelow(database: Database, removing: Removing, changes: number): Promise<Judged> {
  const { dialect } = database;
  const { accountId, entity, id } = removing;
  const gone = new Set<number>();
  const users = new Map<number, Reader>();
  const counts = { sources: 0, points: 0, holding: 0 };
  const judge = (variableIds: readonly number[], sourceIds: readonly number[]) =>
    database.ask(function* () {
      const holders = holdersOf(removing, sourceIds);
      for (const user of yield* usersOf(dialect, accountId, variableIds, holders)) users.set(user.id, user);
      const held = yield* pointsOf(dialect, variableIds);
      counts.points += held.points;
      counts.holding += held.variables;
    });
  const ofEntity = entity === "site" ? "site_id" : "id";
  for await (const sourceIds of idsInParts(database, `SELECT id FROM source WHERE ${ofEntity} = ?`, id)) {
    counts.sources += sourceIds.length;
    await judge([], sourceIds);
    const ofSources = `SELECT id FROM variable WHERE ${dialect.among("source_id")}`;
    for await (const ids of idsInParts(database, ofSources, sourceIds)) {
      for (const variable of ids) gone.add(variable);
      await judge(ids, []);
    }
  }
  const others = [...users.values()].filter((user) => !gone.has(user.id));
  return {
    ...{ ...counts, variables: gone.size, changes },
    users: others.toSorted((one, other) => one.id - other.id),
  };
}

async function* idsInParts(database: Database, select: string, of: SqlValue): AsyncGenerator<readonly number[]> {
  for (let last = 0; ; await breath()) {
    const after = last;
    const sql = `${select} AND id > ? ORDER BY id LIMIT ${JUDGED_ROWS}`;
    const ids = idsOf(await database.ask(() => rows(sql, of, after)));
    if (ids.length === 0) return;
    yield ids;
    last = ids.at(-1) ?? last;
  }
}

/** The removals that were begun and not finished; another hub that does so, too, takes turns with this one. */
async function continueRemovals(database: Database, signal: AbortSignal): Promise<void> {
  for (const { held } of await heldAccounts(database))
    if ("removing" in held) await continueRemoval(database, held as HeldRemoval, signal);
}

/** Slice after slice until the last one; null where what is left is to be judged again. */
async function continueRemoval(database: Database, held: HeldRemoval, signal?: AbortSignal): Promise<Removal | null> {
  const { dialect } = database;
  const { accountId, entity, id } = held.removing;
  const slice = function* (): Steps<{ readonly ended: Removal | null } | null> {
    yield* dialect.holdLane(accountId);
    const found = yield* ownedEntity(dialect, entity, id, accountId);
    // Another hub has ended it.
    if (found === undefined) return { ended: held.removed };
    if ((yield* heldBy(dialect, accountId, held)) === null) return { ended: null };
    const isEnded = yield* removeSome(dialect, held, found);
    // Others who keep what they know of the structure read it again.
    yield* noteChange(accountId);
    if (isEnded === null) return null;
    yield* putHeld(accountId, null);
    return { ended: isEnded ? held.removed : null };
  };
  const done = await writeSlices(database, slice, { signal, between: () => faultPoint("hub.removal.slice") });
  return done?.ended ?? null;
}

/** Whether all is removed; null: there is more, false: points have come meanwhile, which stay with what they are in. */
function* removeSome(dialect: StoreDialect, { removing, removed }: HeldRemoval, found: Row): Steps<boolean | null> {
  const { entity, id, withPoints } = removing;
  const below = yield* belowOf(entity, id);
  const isLast = !isMuch(below);
  // Variables before the sources that they are in.
  const some = { ...below, sources: isLast || below.variables.length === 0 ? below.sources : [] };
  if (!withPoints && (yield* pointsOf(dialect, idsOf(some.variables))).points > 0) return false;
  if (isLast) yield* removeLast(dialect, removing, found, some, removed);
  else yield* removeRows(dialect, removing, found, some);
  return isLast ? true : null;
}

function* removeAlone(dialect: StoreDialect, removing: Removing, found: Row, below: Below): Steps<Removal> {
  const { accountId, withPoints } = removing;
  const ids = idsOf(below.variables);
  const users = yield* usersOf(dialect, accountId, ids, holdersOf(removing, idsOf(below.sources)));
  if (users.length > 0) return { kind: "in-use", users };
  const { points, variables: holding } = yield* pointsOf(dialect, ids);
  if (points > 0 && !withPoints) return { kind: "holds-points", variables: holding, points };
  const counts = { sources: below.sources.length, variables: below.variables.length };
  const removed = { kind: "removed" as const, ...counts, points };
  yield* removeLast(dialect, removing, found, below, removed);
  return removed;
}

/** Up to one more than go in a slice. */
function* belowOf(entity: StructureEntity, id: number): Steps<Below> {
  const { variables, sources } = BELOW[entity];
  const some = ` LIMIT ${SLICE_ROWS + 1}`;
  return {
    variables: inOrder(yield* rows(variables + some, id)),
    sources: sources === null ? [] : inOrder(yield* rows(sources + some, id)),
  };
}

const inOrder = (found: readonly Row[]) => found.toSorted((one, other) => Number(one["id"]) - Number(other["id"]));

const isMuch = ({ variables, sources }: Below) => variables.length + sources.length > SLICE_ROWS;

const idsOf = (found: readonly Row[]) => found.map((one) => Number(one["id"]));

/** Entities whose values of forms calculated variables may read. */
const holdersOf = ({ entity, id }: Removing, sourceIds: readonly number[]) =>
  [
    ["source", sourceIds],
    ["site", entity === "site" ? [id] : []],
  ] as const;

/** Variables and sources, with an event for each; `found` is the row of the entity above them. */
function* removeRows(dialect: StoreDialect, { accountId, entity }: Removing, found: Row, below: Below): Steps<void> {
  const { among } = dialect;
  const { variables, sources } = below;
  const ids = idsOf(variables);
  for (const table of ["point_version", "point", "point_block"])
    yield* change(`DELETE FROM ${table} WHERE ${among("variable_id")}`, ids);
  yield* forgetRollups(dialect, ids);
  // One calculated variable may read another one, which goes with it.
  yield* change(`DELETE FROM calculated_input WHERE ${among("calculated_id")}`, ids);
  yield* change(`DELETE FROM calculated_input WHERE ${among("variable_id")}`, ids);
  yield* change(`DELETE FROM variable WHERE ${among("id")}`, ids);
  if (sources.length > 0) {
    // Slices go with their site or source.
    yield* change(`DELETE FROM source WHERE ${among("id")}`, idsOf(sources));
    yield* clearReferences(dialect, accountId, "source", idsOf(sources));
  }
  yield* addBelowEvents(accountId, entity, found, below);
}

/** The last rows below the entity, and the entity itself. */
function* removeLast(
  dialect: StoreDialect,
  removing: Removing,
  found: Row,
  below: Below,
  removed: Removed,
): Steps<void> {
  const { accountId, entity, id } = removing;
  yield* removeRows(dialect, removing, found, below);
  if (entity === "site") {
    yield* change("DELETE FROM site WHERE id = ?", id);
    yield* clearReferences(dialect, accountId, "site", [id]);
  }
  yield* addRemovalEvent(accountId, entity, found, removed);
}

function ownedEntity(dialect: StoreDialect, entity: StructureEntity, id: number, accountId: number) {
  const sql = `SELECT * FROM ${entity} WHERE id = ? AND account_id = ?${dialect.forUpdate(entity)}`;
  return row(sql, id, accountId);
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

export interface StructureStore {
  /**
   * Values of forms are stored as `judge` says, as in the next method. All three throw `AccountFull` where the account
   * has `most`.
   */
  createSite(accountId: number, body: SiteBody, judge?: JudgeValues, most?: number): Promise<number>;
  /** Null when the site is not one of the account. */
  createSource(accountId: number, body: SourceBody, judge?: JudgeValues, most?: number): Promise<StoredSource | null>;
  /** Null when the source is not one of the account. A definition is stored as `judge` says. */
  createVariable(accountId: number, body: VariableBody, judge?: JudgeDefinition, most?: number): Promise<number | null>;
  /**
   * Reads, changes and writes in one transaction; `change` may throw, and then nothing is written. `missing`:
   * no such entity in the account; `no-parent`: the new site or source does not belong to the account.
   */
  changeSite(
    accountId: number,
    id: number,
    change: (current: StoredSite, held: HeldForms) => ChangedValues<SiteBody>,
  ): Promise<StoredSite | "missing">;
  changeSource(
    accountId: number,
    id: number,
    change: (current: StoredSource, held: HeldForms) => ChangedValues<SourceBody>,
  ): Promise<StoredSource | "missing" | "no-parent">;
  /** `points` of the variable so far, so that a change can depend on them. */
  changeVariable(
    accountId: number,
    id: number,
    change: (current: StoredVariable, points: number) => VariableBody,
    judge?: JudgeDefinition,
  ): Promise<StoredVariable | "missing" | "no-parent">;
  /** Removes an entity with everything below it. With points below, only when `withPoints` is set. */
  remove(accountId: number, entity: StructureEntity, id: number, withPoints: boolean): Promise<Removal>;
  /** Removals of much that were begun and not finished. */
  resumeRemovals(signal: AbortSignal): Promise<void>;
  /** Ordered by id, as the next two methods. */
  sites(accountId: number, filter: SitesFilter, page: Page): Promise<Listing<StoredSite>>;
  sources(accountId: number, filter: SourcesFilter, page: Page): Promise<Listing<StoredSource>>;
  variables(accountId: number, filter: VariablesFilter, page: Page): Promise<Listing<StoredVariable>>;
}

// ───────────────────────────────────────────────────────────── people: `identity.ts`, `people/people.ts`

/** A list of values means any of them; fields combine with AND; absent fields do not filter. */
export interface SitesFilter {
  readonly ids?: readonly number[] | undefined;
  /** All conditions must be true. */
  readonly where?: readonly FilterNode[] | undefined;
}

export interface SourcesFilter {
  readonly ids?: readonly number[] | undefined;
  readonly siteIds?: readonly number[] | undefined;
  readonly states?: readonly string[] | undefined;
  readonly eans?: readonly string[] | undefined;
  readonly serialNumbers?: readonly string[] | undefined;
  readonly meterNumbers?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** All conditions must be true. */
  readonly where?: readonly FilterNode[] | undefined;
}
