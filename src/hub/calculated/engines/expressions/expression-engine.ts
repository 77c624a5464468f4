/**
 * The engine of expressions: each runs in a thread of its own, since one over many rows takes minutes of a processor.
 * It ends with its time or its memory, and holds nothing back meanwhile.
 */
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { besideModule } from "../../../../support/threads/beside.ts";
import { isOutOfMemory } from "../../../../support/threads/out-of-memory.ts";
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
    const thread: ExpressionThread = { memory };
    return new Piscina<CalculationInput, CalculationResult>({
      filename: fileURLToPath(besideModule(import.meta.url, "worker")),
      name: "perform",
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: idle,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(memory / 1_000_000) },
      workerData: thread,
      recordTiming: false,
    });
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
