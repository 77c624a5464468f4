/** Which formulas are expressions: one rule for what is checked when it is saved and for what is calculated. */

/** Blanks before the `=` do not count; every other formula is an R script. */
export function isExpression(formula: string): boolean {
  return formula.trimStart().startsWith("=");
}

/** Without its leading `=`. */
export function expressionIn(formula: string): string {
  return formula.trimStart().slice(1);
}
