/**
 * The engine of expressions: each runs in a thread of its own, since one over many rows takes minutes of a processor.
 * That thread ends with the time or the memory of its expression, and holds nothing back meanwhile.
 */
import type { Piscina } from "piscina";
import { besideModule } from "#core/threads/beside.ts";
import { createWorkerPool, isOutOfMemory } from "#core/threads/worker-pool.ts";
import type { CalculatedOptions } from "../../options.ts";
import type { CalculationEngine, CalculationInput, CalculationResult } from "../engine.ts";
import type { ExpressionThread } from "./worker.ts";

/** `threads`: as many runs as are asked for side by side, so that none waits for another. */
export function createExpressionEngine(
  { timeout, memory, idle }: Pick<CalculatedOptions, "timeout" | "memory" | "idle">,
  threads: number,
): CalculationEngine {
  let pool: Piscina<CalculationInput, CalculationResult> | null = null;
  const start = () => {
    const module = besideModule(import.meta.url, "worker");
    const data: ExpressionThread = { memory };
    const megabytes = Math.ceil(memory / 1_000_000);
    const facts = { module, threads, idleMs: idle, megabytes, data };
    return createWorkerPool<CalculationInput, CalculationResult>(facts);
  };
  return {
    async run(input, signal) {
      signal.throwIfAborted();
      pool ??= start();
      const late = AbortSignal.timeout(timeout);
      try {
        return await pool.run(input, { signal: AbortSignal.any([signal, late]) });
      } catch (thrown) {
        signal.throwIfAborted();
        if (late.aborted) return failed(`took longer than ${timeout / 1_000} s (\`calculated.timeout\`) and was ended`);
        if (!isOutOfMemory(thrown)) throw thrown;
        return failed(`needs more than ${Math.floor(memory / 1_000_000)} MB (\`calculated.memory\`)`);
      }
    },
    close: async () => await pool?.destroy(),
  };
}

function failed(words: string): CalculationResult {
  return { kind: "failed", message: `the expression ${words}` };
}
