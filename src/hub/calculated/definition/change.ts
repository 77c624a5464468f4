/** The definition in a request that creates or changes a variable. */
import { isDeepStrictEqual } from "node:util";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  AGGREGATES,
  type Calculated,
  FORM_ENTITIES,
  type Formula,
  type FormulaEntity,
  type FormulaVariable,
  GRANULARITIES,
  ianaZone,
  PERIOD_TYPES,
  UNITS,
} from "#wire/index.ts";
import type { HubContext } from "../../context.ts";
import { invalidField } from "../../http/problems.ts";
import type { CalculatedEdge } from "../../store/calculated/calculated.ts";
import {
  type DefinitionFacts,
  type DefinitionPlan,
  type FieldRead,
  type InputFacts,
  type JudgeDefinition,
  withoutPlaces,
} from "../../store/calculated/definitions.ts";
import type { HubStore } from "../../store/store.ts";
import { PERIOD_RULE, readInstant } from "../../time.ts";
import { checkExpression, type ExpressionSymbol } from "../engines/expressions/check.ts";
import { expressionIn, isExpression } from "../expression-text.ts";
import type { CalculatedOptions } from "../options.ts";

const POINTS_MAX = 100_000;
/** Periods of a granularity, which are counted one by one; about a hundred years of the longer ones. */
const PERIODS_BACK_MAX: Readonly<Record<number, number>> = {
  [GRANULARITIES.Minute]: 20_000,
  [GRANULARITIES.Hour]: 20_000,
  [GRANULARITIES.Day]: 20_000,
  [GRANULARITIES.Week]: 5_218,
  [GRANULARITIES.Month]: 1_200,
  [GRANULARITIES.Year]: 100,
};
const TIME_BASES_MAX = 7;
/** Longest period back, by `periodTimeBase`: about a hundred years. */
const PERIODS_MAX = [0, 3_155_760_000, 52_596_000, 876_600, 36_525, 5_218, 1_200, 100];

/** Fields of periods that each type has; all of them are required. */
const FIELDS = {
  [PERIOD_TYPES.RelativeDate]: ["period", "periodTimeBase"],
  [PERIOD_TYPES.AbsoluteDate]: ["fromAbsolutePeriod", "toAbsolutePeriod"],
  [PERIOD_TYPES.LastPoints]: ["period"],
} as const;
const ALL_FIELDS = ["period", "periodTimeBase", "fromAbsolutePeriod", "toAbsolutePeriod"] as const;

/** Place of the formulas in the body of a variable. */
const FORMULAS = "calculated.calculatedVariableFormulas";

const NAME = /^(?:\p{L}|\.(?!\d))[\p{L}\p{N}._]*$/u;
const CHARACTERS_MAX = 100;
/** Reserved words of R. */
const RESERVED: ReadonlySet<string> = new Set(
  [
    "if else repeat while function for next break in TRUE FALSE NULL Inf NaN",
    "NA NA_integer_ NA_real_ NA_complex_ NA_character_ ...",
  ].flatMap((words) => words.split(" ")),
);

export class DefinitionChange {
  readonly #context: HubContext;
  readonly #accountId: number;
  /** The definition whose expressions were checked. */
  #checked: Calculated | null = null;

  constructor(context: HubContext, accountId: number) {
    this.#context = context;
    this.#accountId = accountId;
  }

  /** Checks aliases and expressions, which cannot be done inside the transaction. `before`: the definition so far. */
  async check(wanted: Calculated | undefined, before: Calculated | null): Promise<void> {
    if (wanted === undefined || isDeepStrictEqual(withoutPlaces(wanted), before)) return;
    await requireReadable(this.#context.store, this.#accountId, wanted);
    this.#checked = wanted;
  }

  /** Inside the transaction. */
  readonly judge: JudgeDefinition = (facts, wanted) => {
    const plan = judgeDefinition(facts, wanted, this.#context.options.calculated.engine);
    if (!isDeepStrictEqual(wanted, this.#checked))
      throw new HttpProblem(409, "conflict", "the definition was changed by another request meanwhile: send it again");
    return plan;
  };
}

// Checks aliases and expressions of a definition before it is saved; scripts of R are read at their first run.

/** Throws a 400 that names the formula and the column in it. */
async function requireReadable({ points }: HubStore, accountId: number, wanted: Calculated): Promise<void> {
  const formulas = wanted.calculatedVariableFormulas;
  for (const [at, formula] of formulas.entries()) requireAliases(`${FORMULAS}.${at}`, formula);
  const expressions = [...formulas.entries()].flatMap(([at, formula]) => {
    const text = formula.formula;
    return text !== undefined && isExpression(text) ? [{ at, formula, text }] : [];
  });
  if (expressions.length === 0) return;
  const ids = expressions.flatMap(({ formula: { variables = [] } }) => variables.map(({ variableId }) => variableId));
  const units = new Map((await points.select(accountId, { ids })).map(({ id, unitId }) => [id, unitId]));
  for (const { at, formula, text } of expressions) {
    const path = `${FORMULAS}.${at}.formula`;
    if (expressionIn(text).trim() === "") throw invalidField(path, "must be an expression behind =, and not empty");
    const { faults } = await checkExpression(text, symbolsOf(formula, units));
    if (faults.length > 0)
      throw invalidField(path, faults.map(({ message, column }) => `column ${column}: ${message}`).join("; "));
  }
}

function symbolsOf(
  { variables = [], entities = [], constants = [] }: Formula,
  units: ReadonlyMap<number, number>,
): readonly ExpressionSymbol[] {
  return [
    ...variables.map(({ alias: name, variableId, unitId = units.get(variableId) }) => ({
      name,
      kind: "variable" as const,
      ...(unitId === undefined ? {} : { unitId }),
    })),
    ...entities.map(({ alias: name }) => ({ name, kind: "form" as const })),
    ...constants.map(({ alias: name }) => ({ name, kind: "constant" as const })),
  ];
}

// Names under which a formula reads its inputs: names of R, so that `inputVariables$alias` is one.

/** Throws a 400 that names the field. */
function requireAliases(path: string, { variables = [], entities = [], constants = [] }: Formula): void {
  const places = new Map<string, string>();
  for (const [list, items] of Object.entries({ variables, entities, constants }))
    for (const [at, { alias }] of items.entries()) {
      const place = `${list}.${at}.alias`;
      const fault = aliasFault(alias);
      if (fault !== null) throw invalidField(`${path}.${place}`, fault);
      const other = places.get(alias);
      if (other !== undefined)
        throw invalidField(`${path}.${place}`, `is ${alias}, as ${other} is: aliases are unique in a formula`);
      places.set(alias, place);
    }
}

/** Null: it is a valid one. */
function aliasFault(alias: string): string | null {
  if (RESERVED.has(alias)) return `must not be ${alias}, which is a word of R`;
  if (NAME.test(alias) && alias.length <= CHARACTERS_MAX) return null;
  const shown = alias.length > CHARACTERS_MAX ? `${alias.slice(0, CHARACTERS_MAX)}…` : alias;
  return (
    `must be a name of R: letters, digits, dots and underscores, with a letter first, at most ${CHARACTERS_MAX} ` +
    `characters; and not ${JSON.stringify(shown)}`
  );
}

// Judges the definition of a calculated variable, as its body writes it, against the things that it names.

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

// A calculated variable never depends on itself, also not through others.

/** Throws a 409 with the path of the cycle that these inputs would close. A new variable closes none. */
function requireAcyclic({ variableId, edges, names }: DefinitionFacts, inputIds: readonly number[]): void {
  if (variableId === null) return;
  const path = cycleOf(variableId, inputIds, edges);
  if (path === null) return;
  const shown = path.map((id) => (names.has(id) ? `${id} (${names.get(id)})` : String(id))).join(" reads ");
  throw new HttpProblem(
    409,
    "conflict",
    `a calculated variable cannot depend on itself: ${shown}. Change one of these definitions first`,
  );
}

/** From the variable through its inputs back to itself; null: there is no cycle. */
function cycleOf(
  variableId: number,
  inputIds: readonly number[],
  edges: readonly CalculatedEdge[],
): readonly number[] | null {
  const inputsOf = Map.groupBy(edges, ({ calculatedId }) => calculatedId);
  /** By an input, the variable that reads it on the way from `variableId`. */
  const reader = new Map<number, number>(inputIds.map((id) => [id, variableId]));
  const waiting = [...reader.keys()];
  for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
    if (id === variableId) return pathTo(variableId, reader);
    for (const { inputId } of inputsOf.get(id) ?? []) {
      if (reader.has(inputId)) continue;
      reader.set(inputId, id);
      waiting.push(inputId);
    }
  }
  return null;
}

function pathTo(variableId: number, reader: ReadonlyMap<number, number>): readonly number[] {
  const path = [variableId];
  for (let at = reader.get(variableId); at !== undefined && at !== variableId; at = reader.get(at)) path.unshift(at);
  return [variableId, ...path];
}

// Formulas of one variable hold in parts of time, which do not overlap.

function requireApart(formulas: readonly Formula[], zone: string): void {
  const periods = formulas.map(({ validFrom, validUntil }, at) => {
    const path = `${FORMULAS}.${at}`;
    const fromMs = validFrom === undefined ? Number.NEGATIVE_INFINITY : dateOf(`${path}.validFrom`, validFrom, zone);
    const endMs = validUntil === undefined ? Number.POSITIVE_INFINITY : dateOf(`${path}.validUntil`, validUntil, zone);
    if (fromMs >= endMs) throw invalidField(`${path}.validUntil`, "must be after validFrom");
    return { at, fromMs, endMs };
  });
  const inOrder = periods.toSorted((one, other) => one.fromMs - other.fromMs || one.at - other.at);
  for (const [place, { at, fromMs }] of inOrder.entries()) {
    const before = inOrder[place - 1];
    if (before !== undefined && fromMs < before.endMs)
      throw invalidField(
        `${FORMULAS}.${at}.validFrom`,
        `overlaps formula ${before.at}: of two formulas only one may hold at a time (validUntil is excluded)`,
      );
  }
}

// Judges one variable that a formula reads: its place, aggregation, period and unit.

/** Throws a 400 that names the field. */
function judgeInput(path: string, input: FormulaVariable, { inputs, zone }: DefinitionFacts): void {
  const held = inputs.get(input.variableId);
  if (held === undefined) throw invalidField(`${path}.variableId`, `no variable ${input.variableId} in this account`);
  for (const field of ["sourceId", "siteId"] as const)
    if (input[field] !== undefined && input[field] !== held[field])
      throw invalidField(
        `${path}.${field}`,
        `the variable ${held.id} is of ${field.slice(0, -2)} ${held[field]}, not of ${input[field]}`,
      );
  judgeAggregation(path, input, held);
  judgePeriod(path, input, zone);
  judgeUnit(path, input, held);
}

function judgeAggregation(
  path: string,
  { granularity = 0, aggregation = 0 }: FormulaVariable,
  { id, usualAggregate }: InputFacts,
): void {
  if (!Object.values<number>(GRANULARITIES).includes(granularity))
    throw invalidField(`${path}.granularity`, `${granularity} is no number of GET /granularity`);
  if (!Object.values<number>(AGGREGATES).includes(aggregation))
    throw invalidField(`${path}.aggregation`, `${aggregation} is no number of GET /aggregates`);
  if (granularity === GRANULARITIES.All)
    throw invalidField(`${path}.granularity`, "must not be All, which gives one value without a date of its own");
  if (granularity !== GRANULARITIES.Raw && aggregation === AGGREGATES.None && usualAggregate === null)
    throw invalidField(
      `${path}.aggregation`,
      `is missing: a granularity needs it, and the variable ${id} has neither an aggregate nor a quantityType`,
    );
  if (granularity === GRANULARITIES.Raw && aggregation !== AGGREGATES.None)
    throw invalidField(`${path}.granularity`, "is missing: an aggregation needs one other than Raw");
}

function judgePeriod(path: string, input: FormulaVariable, zone: string): void {
  const { periodType, period = 1, periodTimeBase = 1 } = input;
  const names = Object.entries(PERIOD_TYPES);
  const type = names.find(([, number]) => number === periodType)?.[0];
  if (periodType !== undefined && type === undefined)
    throw invalidField(
      `${path}.periodType`,
      `must be one of ${names.map(([name, id]) => `${id} (${name})`).join(", ")}`,
    );
  const own: readonly string[] = Object.entries(FIELDS).find(([number]) => Number(number) === periodType)?.[1] ?? [];
  for (const field of ALL_FIELDS) {
    if (own.includes(field) && input[field] === undefined)
      throw invalidField(`${path}.${field}`, `is missing: the periodType is ${type}`);
    if (!own.includes(field) && input[field] !== undefined)
      throw invalidField(
        `${path}.${field}`,
        type === undefined ? "needs a periodType" : `has no meaning where the periodType is ${type}: leave it out`,
      );
  }
  if (periodType === PERIOD_TYPES.AbsoluteDate) {
    const fromMs = dateOf(`${path}.fromAbsolutePeriod`, input.fromAbsolutePeriod, zone);
    const toMs = dateOf(`${path}.toAbsolutePeriod`, input.toAbsolutePeriod, zone);
    if (fromMs >= toMs) throw invalidField(`${path}.toAbsolutePeriod`, "must be after fromAbsolutePeriod");
  }
  if (periodType === PERIOD_TYPES.LastPoints) judgeLastPoints(path, period, input.granularity ?? GRANULARITIES.Raw);
  if (periodType !== PERIOD_TYPES.RelativeDate) return;
  if (periodTimeBase < 1 || periodTimeBase > TIME_BASES_MAX)
    throw invalidField(`${path}.periodTimeBase`, `${periodTimeBase} is no number of GET /timePeriods`);
  if (period > (PERIODS_MAX[periodTimeBase] ?? 0)) throw invalidField(`${path}.period`, "must be at most 100 years");
}

/** Points, or with a granularity periods that have points. */
function judgeLastPoints(path: string, period: number, granularity: number): void {
  const most = PERIODS_BACK_MAX[granularity];
  if (period > (most ?? POINTS_MAX))
    throw invalidField(
      `${path}.period`,
      most === undefined ? `must be at most ${POINTS_MAX} points` : `must be at most ${most} with this granularity`,
    );
}

/** Without a designator it is read in the zone of the source. */
function dateOf(path: string, text: string | undefined, zone: string): number {
  const read = readInstant(text ?? "", ianaZone(zone) ?? "UTC", PERIOD_RULE);
  if (read.kind === "refused") throw invalidField(path, `${read.reason}: ${JSON.stringify(text)}`);
  return read.ms;
}

function judgeUnit(path: string, { unitId }: FormulaVariable, held: InputFacts): void {
  if (unitId === undefined || unitId === held.unitId) return;
  const byId = (id: number) => UNITS.find((unit) => unit.id === id);
  const wanted = byId(unitId);
  if (wanted === undefined) throw invalidField(`${path}.unitId`, `${unitId} is no id of GET /units`);
  const own = byId(held.unitId);
  if (own?.unitFamilyId !== wanted.unitFamilyId)
    throw invalidField(
      `${path}.unitId`,
      `${wanted.symbol} is of another family than ${own?.symbol ?? held.unitId}, the unit of the variable ` +
        `${held.id}: values are not converted between them`,
    );
}
