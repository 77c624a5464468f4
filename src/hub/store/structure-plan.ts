/** Creates and changes many sites, sources and variables inside one write. */
import type { SiteBody, SourceBody, VariableBody } from "../../wire/index.ts";
import { markDependants, markReaders, markRezoned, nowMs, WHOLE_HISTORY, zonesOf } from "./calculated/marks.ts";
import { rows, type Steps, type StoreDialect, update } from "./database.ts";
import type { SqlValue } from "./filter-sql.ts";
import { putSlices, type ValuePlan, type ValuesEntity } from "./form-values.ts";
import { siteColumns, sourceColumns, variableColumns } from "./structure-rows.ts";

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

export function* changeStructure(
  dialect: StoreDialect,
  accountId: number,
  plan: StructurePlan,
): Steps<Omit<CreatedIds, "users">> {
  const account = { account_id: accountId };
  const own = (body: Columns) => ({ ...account, ...body });
  const sites = yield* insertAll(
    "site",
    plan.sites.map(({ body }) => own(siteColumns(body))),
  );
  const siteId = (ref: Ref) => ("id" in ref ? ref.id : (sites[ref.created] ?? 0));
  const sources = yield* insertAll(
    "source",
    plan.sources.map(({ body, site }) => own(sourceColumns({ ...body, siteId: siteId(site) }))),
  );
  const sourceId = (ref: Ref) => ("id" in ref ? ref.id : (sources[ref.created] ?? 0));
  const variables = yield* insertAll(
    "variable",
    plan.variables.map(({ body, source }) => own(variableColumns({ ...body, sourceId: sourceId(source) }))),
  );
  const idsOf = (changed: readonly { readonly id: number }[]) => changed.map(({ id }) => id);
  const zones = new Map([
    ...(yield* zonesOf(dialect, accountId, "site", idsOf(plan.changedSites))),
    ...(yield* zonesOf(dialect, accountId, "source", idsOf(plan.changedSources))),
  ]);
  for (const { id, body } of plan.changedSites) yield* update("site", id, siteColumns(body));
  for (const { id, body, site } of plan.changedSources)
    yield* update("source", id, sourceColumns({ ...body, siteId: siteId(site) }));
  const put = (entity: ValuesEntity, id: number, values: ValuePlan) => putSlices(accountId, entity, id, values);
  for (const [at, { values }] of plan.sites.entries()) yield* put("site", sites[at] ?? 0, values);
  for (const [at, { values }] of plan.sources.entries()) yield* put("source", sources[at] ?? 0, values);
  for (const { id, values } of plan.changedSites) yield* put("site", id, values);
  for (const { id, values } of plan.changedSources) yield* put("source", id, values);
  for (const { id, body } of plan.changedVariables) yield* update("variable", id, variableColumns(body));
  yield* markRezoned(dialect, accountId, zones);
  yield* markChanged(dialect, accountId, plan);
  return { sites, sources, variables };
}

/** Formulas may read what was changed: values of forms, and variables whose unit is another one. */
function* markChanged(dialect: StoreDialect, accountId: number, plan: StructurePlan): Steps<void> {
  const idsOf = (changed: readonly { readonly id: number }[]) => changed.map(({ id }) => id);
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
