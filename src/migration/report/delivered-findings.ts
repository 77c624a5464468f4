/**
 * Findings about the files that a migration delivered, as a plan would have found them: duplicates, overlaps, shifts,
 * units.
 */
import type { Run, TargetFacts } from "../../model.ts";
import { mayBeWrong, Plan, type PlanFinding } from "../plan/plan.ts";

/** The number of file and target pairs that are compared; further ones are not. */
const SHARES_MAX = 100_000;

interface Delivered {
  readonly run: Pick<Run, "path" | "sha256" | "points">;
  readonly targets: TargetFacts[];
}

export class DeliveredFindings {
  /** By drop and path: the latest attempt of a file counts. */
  readonly #files = new Map<string, Delivered>();
  #shares = 0;

  take(run: Run): (targets: readonly TargetFacts[]) => void {
    const file: Delivered = { run, targets: [] };
    const key = `${run.drop}\n${run.path}`;
    this.#files.delete(key);
    this.#files.set(key, file);
    return (targets) => {
      const taken = targets.slice(0, Math.max(0, SHARES_MAX - this.#shares));
      file.targets.push(...taken);
      this.#shares += targets.length;
    };
  }

  found(): readonly PlanFinding[] {
    const plan = new Plan();
    for (const { run, targets } of this.#files.values())
      plan.add({
        ...{ file: { path: run.path }, mapper: "", fault: null, sha256: run.sha256, targets },
        ...{ points: run.points.mapped, rejected: 0 },
      });
    return plan.findings(this.#shares <= SHARES_MAX, mayBeWrong);
  }
}
