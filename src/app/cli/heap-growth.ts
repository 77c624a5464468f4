/** How far the heap of a process that runs for long may grow before it is collected (docs/decisions/0016). */
import { setFlagsFromString } from "node:v8";
import { environmentVariable } from "#core/config/document.ts";

const GROWING_PERCENT = 70;
const CHOSEN = /--(?:initial[-_]old[-_]space[-_]size|heap[-_]growing[-_]percent)/;

/**
 * Collects the old generation whenever it has grown by seven tenths. Called when the process has loaded its modules:
 * a flag of V8 that is set before makes Node compile all of its own modules again. Nothing where the user chose a size.
 */
export function limitHeapGrowth(): void {
  const chosen = [...process.execArgv, environmentVariable("NODE_OPTIONS") ?? ""].join(" ");
  if (!CHOSEN.test(chosen)) setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
}
