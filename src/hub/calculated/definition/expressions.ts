/** Checks aliases and expressions of a definition before it is saved; scripts of R are read at their first run. */
import type { Calculated, Formula } from "#wire/index.ts";
import { invalidField } from "../../http/problems.ts";
import type { HubStore } from "../../store/store.ts";
import { checkExpression, type ExpressionSymbol } from "../engines/expressions/check.ts";
import { expressionIn, isExpression } from "../expression-text.ts";
import { requireAliases } from "./aliases.ts";
import { FORMULAS } from "./validity.ts";

/** Throws a 400 that names the formula and the column in it. */
export async function requireReadable({ points }: HubStore, accountId: number, wanted: Calculated): Promise<void> {
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
