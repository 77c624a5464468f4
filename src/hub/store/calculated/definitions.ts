/** Definitions of calculated variables inside a write, which holds the lane of the account. */
import { type Aggregate, type Calculated, FORM_ENTITIES, usualAggregate } from "#wire/index.ts";
import { change, row, rows, type Steps, type StoreDialect } from "../database.ts";
import { formsOf, type StoredForm } from "../forms.ts";
import type { ValuesEntity } from "../records.ts";
import { jsonOf } from "../structure-rows.ts";
import { type CalculatedEdge, graphOf } from "./calculated.ts";
import { markDue, WHOLE_HISTORY } from "./marks.ts";

/** A variable that a formula may read, and its place. */
export interface InputFacts {
  readonly id: number;
  readonly sourceId: number;
  readonly siteId: number;
  readonly unitId: number;
  /** Null: neither its aggregate nor its quantity says one. */
  readonly usualAggregate: Aggregate | null;
}

/** Facts by which a definition is judged: of the ids that it names only those of the account are there. */
export interface DefinitionFacts {
  /** Null: a new variable. */
  readonly variableId: number | null;
  /** Of the calculated variable's source; Windows or IANA. */
  readonly zone: string;
  readonly inputs: ReadonlyMap<number, InputFacts>;
  readonly siteIds: ReadonlySet<number>;
  /** The site of each source. */
  readonly sources: ReadonlyMap<number, number>;
  readonly forms: readonly StoredForm[];
  /** Of the other calculated variables. */
  readonly edges: readonly CalculatedEdge[];
  /** Of calculated variables. */
  readonly names: ReadonlyMap<number, string>;
}

/** A definition as it is stored, and the things that it reads. */
export interface DefinitionPlan {
  readonly definition: Calculated;
  readonly inputs: readonly { readonly variableId: number; readonly isTrigger: boolean }[];
  readonly fields: readonly FieldRead[];
}

export interface FieldRead {
  readonly entity: ValuesEntity;
  readonly entityId: number;
  readonly fieldId: number;
}

/** May throw, and then nothing is written. */
export type JudgeDefinition = (facts: DefinitionFacts, wanted: Calculated) => DefinitionPlan;

interface Place {
  readonly accountId: number;
  /** Null: a new variable. */
  readonly variableId: number | null;
  readonly sourceId: number;
}

/** The lane keeps the things that a definition names until the transaction ends. */
export function* definitionFacts(
  dialect: StoreDialect,
  { accountId, variableId, sourceId }: Place,
  { calculatedVariableFormulas: formulas }: Calculated,
): Steps<DefinitionFacts> {
  const { among } = dialect;
  const entities = formulas.flatMap((formula) => formula.entities ?? []);
  const wanted = (all: readonly (number | undefined)[]) => [...new Set(all.filter((id) => id !== undefined))];
  const variableIds = wanted(formulas.flatMap(({ variables = [] }) => variables.map((one) => one.variableId)));
  const inputs = yield* rows(
    `SELECT variable.id, variable.source_id, source.site_id, variable.unit_id, variable.aggregate,
      variable.quantity_type FROM variable
      JOIN source ON source.id = variable.source_id WHERE variable.account_id = ? AND ${among("variable.id")}`,
    ...[accountId, variableIds],
  );
  const sources = yield* rows(
    `SELECT id, site_id FROM source WHERE account_id = ? AND ${among("id")}`,
    ...[accountId, wanted(entities.map((one) => one.sourceId))],
  );
  const sites = yield* rows(
    `SELECT id FROM site WHERE account_id = ? AND ${among("id")}`,
    ...[accountId, wanted(entities.map((one) => one.siteId))],
  );
  const forms = entities.length === 0 ? [] : [...(yield* formsOf(dialect, accountId, "Site"))];
  if (entities.length > 0) forms.push(...(yield* formsOf(dialect, accountId, "Source")));
  const names = yield* rows("SELECT id, name FROM variable WHERE account_id = ? AND calculated IS NOT NULL", accountId);
  return {
    variableId,
    zone: yield* zoneOf(sourceId),
    inputs: new Map(
      inputs.map((one) => {
        const number = (column: string) => Number(one[column] ?? 0);
        const id = number("id");
        const aggregate = usualAggregate({ aggregate: number("aggregate"), quantityType: number("quantity_type") });
        const place = { sourceId: number("source_id"), siteId: number("site_id") };
        return [id, { id, ...place, unitId: number("unit_id"), usualAggregate: aggregate }];
      }),
    ),
    siteIds: new Set(sites.map((one) => Number(one["id"]))),
    sources: new Map(sources.map((one) => [Number(one["id"]), Number(one["site_id"])])),
    forms,
    edges: (yield* graphOf(accountId)).filter(({ calculatedId }) => calculatedId !== variableId),
    names: new Map(names.map((one) => [Number(one["id"]), String(one["name"])])),
  };
}

function* zoneOf(sourceId: number): Steps<string> {
  const found = yield* row(
    `SELECT coalesce(source.time_zone_id, site.time_zone_id) AS zone FROM source JOIN site ON site.id = source.site_id
      WHERE source.id = ?`,
    sourceId,
  );
  return String(found?.["zone"] ?? "UTC");
}

/** Null: the variable is plain from now on. Runs of the earlier definition go, and the whole history is due. */
export function* putDefinition(
  dialect: StoreDialect,
  accountId: number,
  variableId: number,
  plan: DefinitionPlan | null,
  nowMs: number,
): Steps<void> {
  for (const table of ["calculated_input", "calculated_field"])
    yield* change(`DELETE FROM ${table} WHERE calculated_id = ?`, variableId);
  yield* change("DELETE FROM calculation_due WHERE variable_id = ?", variableId);
  yield* change("DELETE FROM calculation_missed WHERE variable_id = ?", variableId);
  yield* change(
    "DELETE FROM calculation WHERE variable_id = ? AND state IN ('running', 'waiting', 'storing')",
    variableId,
  );
  const definition = plan === null ? null : jsonOf(plan.definition);
  yield* change("UPDATE variable SET calculated = ? WHERE id = ?", definition, variableId);
  if (plan === null) return;
  for (const { variableId: inputId, isTrigger } of plan.inputs)
    yield* change(
      "INSERT INTO calculated_input (calculated_id, variable_id, account_id, is_trigger) VALUES (?, ?, ?, ?)",
      ...[variableId, inputId, accountId, isTrigger],
    );
  for (const { entity, entityId, fieldId } of plan.fields)
    yield* change(
      "INSERT INTO calculated_field (calculated_id, entity, entity_id, field_id, account_id) VALUES (?, ?, ?, ?, ?)",
      ...[variableId, entity, entityId, fieldId, accountId],
    );
  const whole = { variableId, inputId: null, ...WHOLE_HISTORY, cause: "definition" as const };
  yield* markDue(dialect, accountId, [whole], nowMs);
}

/** A formula finds a variable by its id, wherever it is: sources and sites are shown as they are at the time. */
export function withoutPlaces(definition: Calculated): Calculated {
  return {
    ...definition,
    calculatedVariableFormulas: definition.calculatedVariableFormulas.map((formula) => ({
      ...formula,
      ...(formula.variables === undefined
        ? {}
        : { variables: formula.variables.map(({ siteId: _site, sourceId: _source, ...input }) => input) }),
      ...(formula.entities === undefined
        ? {}
        : {
            entities: formula.entities.map(({ siteId, sourceId, ...entity }) =>
              entity.entityType === FORM_ENTITIES.Site ? { ...entity, siteId } : { ...entity, sourceId },
            ),
          }),
    })),
  };
}
