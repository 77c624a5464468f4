/** Waits until a gateway has taken all files and everything is at rest. */

import { setFlagsFromString } from "node:v8";
import { environmentVariable } from "#core/config/document.ts";
import type { Gateway } from "#gateway/gateway.ts";

const GROWING_PERCENT = 70;
const CHOSEN = /--(?:initial[-_]old[-_]space[-_]size|heap[-_]growing[-_]percent)/;

/** A check while steps are in progress reads nothing. */
const CHECK_EVERY_MS = { busy: 20, otherwise: 100 };

/** `idle`: no work is left; `timeout`: work is left; `stopped`: a signal came. */
export async function waitUntilIdle(
  gateway: Gateway,
  stop: AbortSignal,
  timeoutMs: number,
): Promise<"idle" | "timeout" | "stopped"> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await gateway.isIdle(true)) return "idle";
    if (stop.aborted) return "stopped";
    if (performance.now() > deadline) return "timeout";
    await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS[gateway.isBusy ? "busy" : "otherwise"]));
  }
}

// How far the heap of a process that runs for long may grow before it is collected (docs/dev/decisions/0016).

/**
 * Collects the old generation whenever it has grown by seven tenths. Called when the process has loaded its modules:
 * a flag of V8 that is set before makes Node compile all of its own modules again. Nothing where the user chose a size.
 */
export function limitHeapGrowth(): void {
  const chosen = [...process.execArgv, environmentVariable("NODE_OPTIONS") ?? ""].join(" ");
  if (!CHOSEN.test(chosen)) setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
}
