/** Judges the definition of a calculated variable, as its body writes it, against the things that it names. */
import { type Calculated, FORM_ENTITIES, type Formula, type FormulaEntity } from "#wire/index.ts";
import { invalidField } from "../../http/problems.ts";
import {
  type DefinitionFacts,
  type DefinitionPlan,
  type FieldRead,
  withoutPlaces,
} from "../../store/calculated/definitions.ts";
import { isExpression } from "../expression-text.ts";
import type { CalculatedOptions } from "../options.ts";
import { requireAcyclic } from "./cycles.ts";
import { judgeInput } from "./inputs.ts";
import { FORMULAS, requireApart } from "./validity.ts";

/** Throws a 400 that names the field, or a 409 for a cycle. Aliases and expressions were checked before. */
export function judgeDefinition(
  facts: DefinitionFacts,
  wanted: Calculated,
  engine: CalculatedOptions["engine"],
): DefinitionPlan {
  const formulas = wanted.calculatedVariableFormulas;
  for (const [at, formula] of formulas.entries()) judgeFormula(`${FORMULAS}.${at}`, formula, facts, engine);
  requireApart(formulas, facts.zone);
  requireDates(formulas);
  const variables = formulas.flatMap((formula) => formula.variables ?? []);
  requireAcyclic(
    facts,
    variables.map(({ variableId }) => variableId),
  );
  const triggers = Map.groupBy(variables, ({ variableId }) => variableId);
  return {
    definition: withoutPlaces(wanted),
    inputs: [...triggers].map(([variableId, uses]) => ({
      variableId,
      isTrigger: uses.some(({ canBeUsedAsATrigger }) => canBeUsedAsATrigger ?? true),
    })),
    fields: fieldsOf(formulas.flatMap((formula) => formula.entities ?? [])),
  };
}

/** The dates of a formula are those of its variables; without any, those since its beginning. */
function requireDates(formulas: readonly Formula[]): void {
  for (const [at, { formula, variables = [], validFrom }] of formulas.entries())
    if (formula !== undefined && variables.length === 0 && validFrom === undefined)
      throw invalidField(
        `${FORMULAS}.${at}.validFrom`,
        "is missing: a formula without variables has no dates, and is calculated from there until now",
      );
}

function judgeFormula(
  path: string,
  { formula, variables = [], entities = [] }: Formula,
  facts: DefinitionFacts,
  engine: CalculatedOptions["engine"],
): void {
  if (formula?.trim() === "")
    throw invalidField(`${path}.formula`, "must be an R script, or an expression behind =, and not empty");
  if (formula !== undefined && !isExpression(formula) && engine === "none")
    throw invalidField(
      `${path}.formula`,
      "is an R script, and this hub runs none (calculated.engine is none): write an expression behind =, or ask the " +
        "operator for an engine",
    );
  for (const [at, input] of variables.entries()) judgeInput(`${path}.variables.${at}`, input, facts);
  for (const [at, entity] of entities.entries()) judgeEntity(`${path}.entities.${at}`, entity, facts);
}

/** The field of a form of a site or a source. */
function judgeEntity(
  path: string,
  { entityType, siteId, sourceId, formId, groupId, propId }: FormulaEntity,
  { siteIds, sources, forms }: DefinitionFacts,
): void {
  const type = Object.entries(FORM_ENTITIES).find(([, number]) => number === entityType)?.[0];
  if (type === undefined) throw invalidField(`${path}.entityType`, "must be 1 (Site) or 2 (Source)");
  const own = type === "Site" ? "siteId" : "sourceId";
  if ((type === "Site" ? siteId : sourceId) === undefined)
    throw invalidField(`${path}.${own}`, `is missing: the entityType is ${type}`);
  if (siteId !== undefined && !siteIds.has(siteId))
    throw invalidField(`${path}.siteId`, `no site ${siteId} in this account`);
  if (sourceId !== undefined && !sources.has(sourceId))
    throw invalidField(`${path}.sourceId`, `no source ${sourceId} in this account`);
  if (siteId !== undefined && sourceId !== undefined && sources.get(sourceId) !== siteId)
    throw invalidField(
      `${path}.siteId`,
      `the source ${sourceId} is of site ${sources.get(sourceId)}, not of ${siteId}`,
    );
  const form = forms.find(({ id }) => id === formId);
  if (form === undefined) throw invalidField(`${path}.formId`, `no form ${formId} in this account (GET /form)`);
  if (form.entityType !== type)
    throw invalidField(`${path}.formId`, `the form ${formId} is of ${form.entityType}s, and the entityType is ${type}`);
  const group = form.groups.find(({ id }) => id === groupId);
  if (group === undefined) throw invalidField(`${path}.groupId`, `the form ${formId} has no group ${groupId}`);
  if (!group.fields.some(({ id }) => id === propId))
    throw invalidField(`${path}.propId`, `the group ${groupId} of the form ${formId} has no field ${propId}`);
}

/** Each field once. */
function fieldsOf(entities: readonly FormulaEntity[]): readonly FieldRead[] {
  const reads = entities.map(({ entityType, siteId, sourceId, propId }): FieldRead => {
    const isSite = entityType === FORM_ENTITIES.Site;
    return { entity: isSite ? "site" : "source", entityId: (isSite ? siteId : sourceId) ?? 0, fieldId: propId };
  });
  return [...new Map(reads.map((one) => [`${one.entity} ${one.entityId} ${one.fieldId}`, one])).values()];
}
