/** A kept plan as the console shows it: its figures, and its findings by kind. */
import type { PlanReport } from "./dry-run.ts";
import { isPlanning, type KeptPlan } from "./kept-plan.ts";

const EXAMPLES = 5;

export function planFacts(plan: KeptPlan) {
  const { by, begunAt, done, of, report } = plan;
  const state: "running" | "done" | "failed" = report !== null ? "done" : isPlanning(plan) ? "running" : "failed";
  return {
    ...{ by, at: begunAt, state, done, of },
    facts: report === null ? null : figuresOf(report),
    findings: report === null ? [] : findingsOf(report),
  };
}

function figuresOf({ files, bytes, estimate, targets, period, sample, unaskedBecause }: PlanReport) {
  const { points, isCounted, seconds, sendingSeconds } = estimate;
  const figures = { files, bytes, points: Math.round(points), isCounted, targets, seconds };
  return { ...figures, period, isAtLeast: sendingSeconds === null, sample: sample.words, unaskedBecause };
}

/** A line for each cause; those that need a person come first. */
function findingsOf({ findings }: PlanReport) {
  return findings.map(({ kind, count, places }) => ({ kind, count, examples: places.slice(0, EXAMPLES) }));
}
