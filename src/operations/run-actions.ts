/** Actions on a run that needs attention, and the place of its file; for command line and console. */
import { READINGS_LOST, type Run } from "../model.ts";
import { CANCELLABLE_STATES } from "../states.ts";

export type RunAction = "replay" | "provision" | "release" | "recheck" | "cancel" | "forget";

/** Other files have delivered dates of the held run meanwhile: only a person decides which count. */
export const OVERTAKEN = "HG-GUARD-007";

/**
 * The actions that help, the most likely first. `hasTemplate`: its trigger has a template for missing targets. Lost
 * readings cannot be replayed; a person who has replaced them cancels the run.
 */
export function actionsOf(run: Pick<Run, "state" | "reason">, hasTemplate: boolean): readonly RunAction[] {
  if (run.state === "held") return heldActions(run, hasTemplate);
  if (run.reason?.code === READINGS_LOST) return ["cancel"];
  if (run.state === "emptied") return ["replay", "cancel"];
  return run.state === "unconfirmed" ? ["recheck", "replay"] : ["replay"];
}

/** A held run resumes by itself when the missing structure exists, unless only a person can decide. */
function heldActions({ reason }: Pick<Run, "reason">, hasTemplate: boolean): readonly RunAction[] {
  if (reason?.code === OVERTAKEN) return ["replay", "release", "cancel"];
  const isMissing = (reason?.discards ?? 0) > 0;
  return [...(isMissing && hasTemplate ? (["provision"] as const) : []), "recheck", "release", "replay"];
}

/** The same, and all others that are possible. */
export function allActionsOf(run: Pick<Run, "state" | "reason">, hasTemplate: boolean): readonly RunAction[] {
  const usual = actionsOf(run, hasTemplate);
  const isCancellable = CANCELLABLE_STATES.includes(run.state) && !usual.includes("cancel");
  return [...usual, ...(isCancellable ? (["cancel"] as const) : []), "forget"];
}

export function currentPlace(
  { path, finishPlan, finishedAt }: Pick<Run, "path" | "finishPlan" | "finishedAt">,
  goneAt: string | null,
): string {
  if (finishPlan?.action === "archive" && finishedAt !== null) return finishPlan.to;
  if (finishPlan?.action === "delete" && finishedAt !== null) return "deleted";
  return goneAt === null ? path : "no longer at its drop";
}
