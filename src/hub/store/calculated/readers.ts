/** Calculated variables that would miss what a change removes. */
import { rows, type Steps, type StoreDialect } from "../database.ts";
import type { ValuesEntity } from "../records.ts";

export interface Reader {
  readonly id: number;
  readonly name: string;
}

/** Calculated variables that read variables, or form fields of sites or sources, and are not among these themselves. */
export function* usersOf(
  { among }: StoreDialect,
  accountId: number,
  variableIds: readonly number[],
  entities: readonly (readonly [entity: ValuesEntity, ids: readonly number[]])[],
): Steps<readonly Reader[]> {
  const found = [
    ...(yield* rows(
      `SELECT id, name FROM variable WHERE id IN (SELECT calculated_id FROM calculated_input
        WHERE account_id = ? AND ${among("variable_id")}) ORDER BY id`,
      ...[accountId, variableIds],
    )),
  ];
  for (const [entity, ids] of entities)
    found.push(
      ...(yield* rows(
        `SELECT id, name FROM variable WHERE id IN (SELECT calculated_id FROM calculated_field
          WHERE account_id = ? AND entity = ? AND ${among("entity_id")}) ORDER BY id`,
        ...[accountId, entity, ids],
      )),
    );
  const gone = new Set(variableIds);
  const users = new Map(found.map((one) => [Number(one["id"]), String(one["name"])]));
  return [...users].filter(([id]) => !gone.has(id)).map(([id, name]) => ({ id, name }));
}

export function* readersOfFields(
  { among }: StoreDialect,
  accountId: number,
  fieldIds: readonly number[],
): Steps<readonly Reader[]> {
  if (fieldIds.length === 0) return [];
  const found = yield* rows(
    `SELECT id, name FROM variable WHERE id IN (SELECT calculated_id FROM calculated_field
      WHERE account_id = ? AND ${among("field_id")}) ORDER BY id`,
    ...[accountId, fieldIds],
  );
  return found.map((one) => ({ id: Number(one["id"]), name: String(one["name"]) }));
}

export type Removal =
  | {
      readonly kind: "removed";
      readonly sources: number;
      readonly variables: number;
      readonly points: number;
    }
  | { readonly kind: "missing" }
  /** Nothing was removed: these calculated variables read it, or what is below it. */
  | { readonly kind: "in-use"; readonly users: readonly Reader[] }
  /** Nothing was removed. */
  | { readonly kind: "holds-points"; readonly variables: number; readonly points: number };
