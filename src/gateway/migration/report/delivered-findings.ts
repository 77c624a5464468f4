/** Findings about the files that a migration took, as a plan would have found them. */

import { compareNames } from "#core/natural-order.ts";
import type { Run, TargetFacts } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import type { Finding } from "../plan/findings.ts";
import { Plan, type PlannedTarget } from "../plan/plan.ts";
import { faultOf } from "../plan/planner.ts";

/** The number of file and target pairs that are compared; further ones are not. */
const SHARES_MAX = 100_000;

type FileRun = Pick<Run, "drop" | "path" | "state" | "sha256" | "points" | "reason" | "findings">;

interface Delivered {
  readonly run: FileRun;
  readonly targets: PlannedTarget[];
}

export class DeliveredFindings {
  /** By drop and path: the latest attempt of a file counts. */
  readonly #files = new Map<string, Delivered>();
  #shares = 0;

  take(run: FileRun): (targets: readonly PlannedTarget[]) => void {
    const file: Delivered = { run, targets: [] };
    this.#files.set(`${run.drop}\n${run.path}`, file);
    return (targets) => {
      const taken = targets.slice(0, Math.max(0, SHARES_MAX - this.#shares));
      file.targets.push(...taken);
      this.#shares += targets.length;
    };
  }

  /** `unclaimed`: paths that no trigger claims. `empty`: patterns without a file, in words. */
  found(unclaimed: readonly string[] = [], empty: readonly string[] = []): readonly Finding[] {
    const plan = new Plan();
    for (const words of empty) plan.note("pattern", words, [], null, words);
    for (const path of unclaimed.toSorted(compareNames))
      plan.add({ ...NOTHING, file: { path }, mapper: null, sha256: null });
    // In the order of a listing, as a plan takes them.
    const files = [...this.#files.values()].toSorted((one, other) => compareNames(one.run.path, other.run.path));
    for (const { run, targets } of files) addTo(plan, run, targets);
    // A file that is still to come may fill a gap.
    const isWhole = files.every(({ run }) => !RUN_STATES[run.state].isOpen);
    return plan.findings(isWhole && this.#shares <= SHARES_MAX);
  }
}

const NOTHING = { points: 0, rejected: 0, fault: null, targets: [] as readonly TargetFacts[], found: [] };

function addTo(plan: Plan, run: FileRun, targets: readonly PlannedTarget[]): void {
  const { path, state, sha256, points, reason, findings: found } = run;
  const { isDelivered, needsAttention } = RUN_STATES[state];
  const isRefused = needsAttention && !isDelivered && state !== "held" && state !== "discarded";
  const fault = isRefused && reason !== null ? faultOf(path, reason) : null;
  plan.add({ ...NOTHING, file: { path }, mapper: "", sha256, targets, points: points.mapped, fault, found });
  if (reason === null) return;
  const unfit = reason.targets ?? [];
  if (state === "held") for (const one of unfit) plan.addUnfit({ ...one, files: [path] });
  if ((state === "held" && unfit.length === 0) || state === "discarded") {
    const { cause, words } = faultOf(path, reason);
    plan.note(state === "held" ? "guard" : "discarded", cause, [path], null, words);
  }
}
