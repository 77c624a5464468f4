/** `migrate --dry-run`: prints the plan and the structure that would be created, as a table or as JSON. */

import { invalidOption } from "#core/invalid-option.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { type MissingTarget, makePlan, type PlanRequest } from "#gateway/migration/plan/dry-run.ts";
import type { PlanKeeper } from "#gateway/migration/plan/kept-plan.ts";
import { parseSample, SAMPLE_DEFAULT, type SampleLimits } from "#gateway/migration/plan/sample.ts";
import type { MigrationStructure, PlannedStructure } from "#gateway/migration/structure/structure.ts";
import { print, printJson } from "../output.ts";
import { printPlan } from "./plan-table.ts";
import { printPlannedStructure } from "./structure-table.ts";

export interface PlanFlags {
  readonly sample?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly versionTag?: string;
  /** Keeps the plan where that is wanted. */
  readonly keeper?: PlanKeeper | null;
}

const REPORT_EVERY_FILES = 100;

/** Returns the exit code. */
export async function showPlan(
  own: GatewayConfig,
  order: Omit<PlanRequest, "tick" | "onMissing">,
  structure: MigrationStructure,
  { json, versionTag, keeper = null }: PlanFlags,
  stop: AbortSignal,
): Promise<number> {
  const tick = (done: number, of: number) => {
    keeper?.tick(done, of);
    if (done % REPORT_EVERY_FILES === 0) process.stderr.write(`${done} of ${of} files mapped\n`);
  };
  const structures: (PlannedStructure | null)[] = [];
  const planStructure = async (missing: readonly MissingTarget[]) => {
    const found = await structure.plan(own, missing, stop);
    structures.push(found);
    return found?.covered ?? new Set<string>();
  };
  const plan = await makePlan(own, { ...order, tick, onMissing: planStructure }, stop);
  // The service was not asked, so that nothing is known to be missing.
  if (structures.length === 0) await planStructure([]);
  const planned = structures[0] ?? null;
  await keeper?.end(plan);
  if (json === true)
    printJson({
      ...plan,
      versionTag: versionTag ?? null,
      ...(planned === null ? {} : { structure: { ...planned, covered: undefined } }),
    });
  else {
    printPlan(plan);
    if (planned !== null) printPlannedStructure(planned);
  }
  if (json !== true && versionTag !== undefined) print(`  ${tagWords(versionTag)}`);
  const isPossible = planned === null || (planned.impossible.length === 0 && planned.unaskedBecause === null);
  const isSound = plan.findings.every(({ isInformation }) => isInformation) && plan.unfit !== null;
  return isSound && isPossible && !stop.aborted ? 0 : 1;
}

export function sampleOf({ sample, dryRun }: PlanFlags): SampleLimits {
  if (sample === undefined) return SAMPLE_DEFAULT;
  if (dryRun !== true) throw invalidOption("--sample", "it limits what a plan reads: use it with --dry-run");
  const limits = parseSample(sample);
  if (limits === undefined)
    throw invalidOption("--sample", `${sample} is neither all nor a number of files nor a size such as 1GB`);
  return limits;
}

function tagWords(tag: string): string {
  return (
    `readings without a version of their own carry the tag ${tag}; readings stored with this tag at their dates ` +
    "are replaced"
  );
}
