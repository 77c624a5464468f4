/** A thread that runs expressions, one after another. */
import { workerData } from "node:worker_threads";
import type { CalculationInput, CalculationResult } from "../engine.ts";
import { computeExpression } from "./expressions.ts";

export interface ExpressionThread {
  /** Bytes. */
  readonly memory: number;
}

const { memory } = workerData as ExpressionThread;

export function perform(input: CalculationInput): Promise<CalculationResult> {
  return computeExpression(input, memory);
}
