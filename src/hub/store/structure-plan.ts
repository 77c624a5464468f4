/** Creates and changes many sites, sources and variables inside one write. */
import type { SiteBody, SourceBody, VariableBody } from "#wire/index.ts";
import { markDependants, markReaders, markRezoned, nowMs, WHOLE_HISTORY, zonesOf } from "./calculated/marks.ts";
import { rows, type Steps, type StoreDialect, update } from "./database.ts";
import type { SqlValue } from "./filter-sql.ts";
import { putSlices, sliceColumns, sliceOfRow, type ValuePlan } from "./form-values.ts";
import type { ValuesEntity } from "./records.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  variableColumns,
  variableOf,
} from "./structure-rows.ts";

/** An entity of the store, or the one at this place of the list of those that the plan creates. */
export type Ref = { readonly id: number } | { readonly created: number };

/** References are known to be of the account. */
interface WithValues {
  readonly values: ValuePlan;
}

export interface StructurePlan {
  readonly sites: readonly (WithValues & { readonly body: SiteBody })[];
  readonly sources: readonly (WithValues & { readonly body: SourceBody; readonly site: Ref })[];
  readonly variables: readonly { readonly body: VariableBody; readonly source: Ref }[];
  readonly changedSites: readonly (WithValues & { readonly id: number; readonly body: SiteBody })[];
  readonly changedSources: readonly (WithValues & {
    readonly id: number;
    readonly body: SourceBody;
    readonly site: Ref;
  })[];
  readonly changedVariables: readonly { readonly id: number; readonly body: VariableBody }[];
}

/** In the order of the lists of the plan. */
export interface CreatedIds {
  readonly sites: readonly number[];
  readonly sources: readonly number[];
  readonly variables: readonly number[];
  readonly users: readonly number[];
}

type Columns = Readonly<Record<string, SqlValue | undefined>>;

/** SQLite takes 32,766 values in a statement. */
const VALUES_MAX = 20_000;

export type CreatedStructure = Omit<CreatedIds, "users">;

export const CREATED_LISTS = ["sites", "sources", "variables"] as const;
export const CHANGED_LISTS = ["changedSites", "changedSources", "changedVariables"] as const;

export const NOTHING_CREATED: CreatedStructure = { sites: [], sources: [], variables: [] };
const NOTHING: StructurePlan = {
  ...{ sites: [], sources: [], variables: [] },
  ...{ changedSites: [], changedSources: [], changedVariables: [] },
};

/** All that a plan creates. */
export function* createAll(accountId: number, plan: StructurePlan): Steps<CreatedStructure> {
  const created: Record<keyof CreatedStructure, readonly number[]> = { sites: [], sources: [], variables: [] };
  for (const list of CREATED_LISTS)
    created[list] = yield* createSome(accountId, plan, list, 0, plan[list].length, created);
  return created;
}

const idsOf = (changed: readonly { readonly id: number }[]) => changed.map(({ id }) => id);

const idOf = (ref: Ref, created: readonly number[]) => ("id" in ref ? ref.id : (created[ref.created] ?? 0));

/** Creates a part of a list; returns the ids. `created`: those in which they are. */
export function* createSome(
  accountId: number,
  plan: StructurePlan,
  list: keyof CreatedStructure,
  from: number,
  to: number,
  created: CreatedStructure,
): Steps<readonly number[]> {
  const own = (body: Columns) => ({ account_id: accountId, ...body });
  if (list === "variables") {
    const some = plan.variables.slice(from, to);
    const inSource = (source: Ref) => ({ sourceId: idOf(source, created.sources) });
    return yield* insertAll(
      "variable",
      some.map(({ body, source }) => own(variableColumns({ ...body, ...inSource(source) }))),
    );
  }
  const sites = list === "sites" ? plan.sites.slice(from, to) : [];
  const sources = list === "sources" ? plan.sources.slice(from, to) : [];
  const inSite = (site: Ref) => ({ siteId: idOf(site, created.sites) });
  const ids = [
    ...(yield* insertAll(
      "site",
      sites.map(({ body }) => own(siteColumns(body))),
    )),
    ...(yield* insertAll(
      "source",
      sources.map(({ body, site }) => own(sourceColumns({ ...body, ...inSite(site) }))),
    )),
  ];
  for (const [at, { values }] of [...sites, ...sources].entries())
    yield* putSlices(accountId, list === "sites" ? "site" : "source", ids[at] ?? 0, values);
  return ids;
}

/** The changes of a plan, as plans of so many changes at most. */
export function changesInParts(plan: StructurePlan, most: number): readonly StructurePlan[] {
  return CHANGED_LISTS.flatMap((list) =>
    Array.from({ length: Math.ceil(plan[list].length / most) }, (_, nth) => ({
      ...NOTHING,
      [list]: plan[list].slice(nth * most, (nth + 1) * most),
    })),
  );
}

/** JSON of the plan that changes back what another one will change. */
export function* changesBefore({ among }: StoreDialect, plan: StructurePlan): Steps<string> {
  const { changedSites, changedSources, changedVariables } = plan;
  const sites = yield* rows(`SELECT * FROM site WHERE ${among("id")}`, idsOf(changedSites));
  const sources = yield* rows(
    `SELECT ${SOURCES.columns} FROM ${SOURCES.from} WHERE ${among("source.id")}`,
    idsOf(changedSources),
  );
  const variables = yield* rows(`SELECT * FROM variable WHERE ${among("id")}`, idsOf(changedVariables));
  const ofSites = yield* slicesBefore("site", changedSites);
  const ofSources = yield* slicesBefore("source", changedSources);
  const values = (slices: ValuePlan["slices"] = []) => ({ clientData: undefined, slices, references: [] });
  return JSON.stringify({
    ...NOTHING,
    changedSites: sites.map(siteOf).map((body) => ({ id: body.id, body, values: values(ofSites.get(body.id)) })),
    changedSources: sources
      .map(sourceOf)
      .map((body) => ({ id: body.id, body, site: { id: body.siteId }, values: values(ofSources.get(body.id)) })),
    changedVariables: variables.map(variableOf).map((body) => ({ id: body.id, body })),
  });
}

/** By entity, of the fields that a plan changes. */
function* slicesBefore(
  entity: ValuesEntity,
  changed: readonly (WithValues & { readonly id: number })[],
): Steps<ReadonlyMap<number, ValuePlan["slices"]>> {
  const before = new Map<number, ValuePlan["slices"]>();
  for (const { id, values } of changed) {
    if (values.slices.length === 0) continue;
    const held = (yield* rows(`SELECT ${sliceColumns} FROM attribute_slice WHERE ${entity}_id = ?`, id)).map(
      sliceOfRow,
    );
    before.set(
      id,
      values.slices.map(({ fieldId }) => ({
        ...{ fieldId, all: true },
        values: held.filter((slice) => slice.fieldId === fieldId),
      })),
    );
  }
  return before;
}

/** The rest of a plan whose new entities are there. */
export function* changeExisting(
  dialect: StoreDialect,
  accountId: number,
  plan: StructurePlan,
  created: CreatedStructure,
): Steps<void> {
  const zones = new Map([
    ...(yield* zonesOf(dialect, accountId, "site", idsOf(plan.changedSites))),
    ...(yield* zonesOf(dialect, accountId, "source", idsOf(plan.changedSources))),
  ]);
  for (const { id, body } of plan.changedSites) yield* update("site", id, siteColumns(body));
  for (const { id, body, site } of plan.changedSources)
    yield* update("source", id, sourceColumns({ ...body, siteId: idOf(site, created.sites) }));
  const put = (entity: ValuesEntity, id: number, values: ValuePlan) => putSlices(accountId, entity, id, values);
  for (const { id, values } of plan.changedSites) yield* put("site", id, values);
  for (const { id, values } of plan.changedSources) yield* put("source", id, values);
  for (const { id, body } of plan.changedVariables) yield* update("variable", id, variableColumns(body));
  yield* markRezoned(dialect, accountId, zones);
  yield* markChanged(dialect, accountId, plan);
}

/** Formulas may read what was changed: values of forms, and variables whose unit is another one. */
function* markChanged(dialect: StoreDialect, accountId: number, plan: StructurePlan): Steps<void> {
  yield* markReaders(dialect, accountId, { entity: "site", ids: idsOf(plan.changedSites), ...WHOLE_HISTORY });
  yield* markReaders(dialect, accountId, { entity: "source", ids: idsOf(plan.changedSources), ...WHOLE_HISTORY });
  const touched = plan.changedVariables.map(({ id }) => ({ inputId: id, ...WHOLE_HISTORY }));
  yield* markDependants(dialect, accountId, touched, "definition", nowMs());
}

/** Returns the ids in the order of the rows: both databases number the rows of a statement in their order. */
function* insertAll(table: string, all: readonly Columns[]): Steps<readonly number[]> {
  const [first] = all;
  if (first === undefined) return [];
  const names = Object.keys(first);
  const places = `(${names.map(() => "?").join(", ")})`;
  const atOnce = Math.floor(VALUES_MAX / names.length);
  const ids: number[] = [];
  for (let at = 0; at < all.length; at += atOnce) {
    const some = all.slice(at, at + atOnce);
    const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES ${some.map(() => places).join(", ")} RETURNING id`;
    const values = some.flatMap((columns) => names.map((name) => columns[name] ?? null));
    const added = yield* rows(sql, ...values);
    ids.push(...added.map((one) => Number(one["id"])).toSorted((one, other) => one - other));
  }
  return ids;
}
