/** The engines of formulas: each is started by the first formula that needs it. */
import type { Formula } from "#wire/calculated.ts";
import type { CalculationEngine } from "../engines/engine.ts";
import { checkExpression, type ExpressionSymbol } from "../engines/expressions/check.ts";
import { createExpressionEngine } from "../engines/expressions/expression-engine.ts";
import { createREngine } from "../engines/r/r-engine.ts";
import type { CalculatedOptions } from "../options.ts";
import type { ReachOfExpression } from "./formulas.ts";

export interface Engines {
  of(isExpression: boolean): CalculationEngine;
  readonly reachOf: ReachOfExpression;
  close(): Promise<void>;
}

/** `sideBySide`: most runs at one time. */
export function createEngines(options: CalculatedOptions, sideBySide: number): Engines {
  const running = new Map<boolean, CalculationEngine>();
  return {
    of(isExpression) {
      const engine =
        running.get(isExpression) ??
        (isExpression ? createExpressionEngine(options, sideBySide) : createREngine(options));
      running.set(isExpression, engine);
      return engine;
    },
    reachOf: async (definition, units) =>
      (await checkExpression(definition.formula ?? "", symbolsOf(definition, units))).reach,
    async close() {
      await Promise.all(running.values().map((engine) => engine.close()));
    },
  };
}

function symbolsOf({ entities, constants }: Formula, units: ReadonlyMap<string, number>): readonly ExpressionSymbol[] {
  return [
    ...Array.from(units, ([name, unitId]) => ({ name, kind: "variable" as const, unitId })),
    ...(entities ?? []).map(({ alias }) => ({ name: alias, kind: "form" as const })),
    ...(constants ?? []).map(({ alias }) => ({ name: alias, kind: "constant" as const })),
  ];
}
