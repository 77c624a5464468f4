/** Brings the values of sites or sources to a new or changed form. */
import { FORM_ENTITIES } from "../../wire/index.ts";
import { rows, type Steps, update } from "./database.ts";
import type { NewForm, StoredForm } from "./forms.ts";
import { jsonOf } from "./structure-rows.ts";

/** A site or a source that has values. */
export interface ValuesOf {
  readonly id: number;
  readonly clientData: Readonly<Record<string, unknown>>;
}
/** Of the sites and the sources of the account, as far as a form can name them. */
export type KnownIds = Readonly<Record<"site" | "source", ReadonlySet<number>>>;
/** Brings the values of one entity to the new definition; undefined: they stay as they are. May throw. */
export type Refit = (
  before: StoredForm | null,
  after: StoredForm | null,
  held: ValuesOf,
  ids: KnownIds,
) => object | undefined;

/** Entities whose values are read at one time. */
const ENTITIES_AT_ONCE = 500;

export function* knownIds(accountId: number, { groups }: NewForm): Steps<KnownIds> {
  const targets = groups.flatMap(({ fields }) => fields.map(({ referenceTo }) => referenceTo));
  const idsOf = function* (table: "site" | "source", target: number): Steps<ReadonlySet<number>> {
    if (!targets.includes(target)) return new Set();
    return new Set(
      (yield* rows(`SELECT id FROM ${table} WHERE account_id = ?`, accountId)).map(({ id }) => Number(id)),
    );
  };
  return { site: yield* idsOf("site", FORM_ENTITIES.Site), source: yield* idsOf("source", FORM_ENTITIES.Source) };
}

export function* refitAll(
  accountId: number,
  before: StoredForm | null,
  after: StoredForm | null,
  refit: Refit,
  ids: KnownIds,
): Steps<void> {
  const table = (after ?? before)?.entityType === "Site" ? "site" : "source";
  const sql = `SELECT id, client_data FROM ${table} WHERE account_id = ? AND client_data IS NOT NULL AND id > ?
    ORDER BY id LIMIT ${ENTITIES_AT_ONCE}`;
  let last = 0;
  for (;;) {
    const found = yield* rows(sql, accountId, last);
    for (const one of found) {
      last = Number(one["id"]);
      const fitted = refit(before, after, { id: last, clientData: JSON.parse(String(one["client_data"])) }, ids);
      if (fitted === undefined) continue;
      const columns = { client_data: Object.keys(fitted).length === 0 ? null : jsonOf(fitted) };
      yield* update(table, last, columns);
    }
    if (found.length < ENTITIES_AT_ONCE) return;
  }
}
