/** Formulas of one variable hold in parts of time, which do not overlap. */
import type { Formula } from "#wire/index.ts";
import { invalidField } from "../../http/problems.ts";
import { dateOf } from "./inputs.ts";

/** Place of the formulas in the body of a variable. */
export const FORMULAS = "calculated.calculatedVariableFormulas";

export function requireApart(formulas: readonly Formula[], zone: string): void {
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
