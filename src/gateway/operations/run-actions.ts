/** Actions on a run that needs attention, and the place of its file; for command line and console. */
import { type Arrival, finishedPlace, type LedgerEvent, PLACE_EVENTS, READINGS_LOST, type Run } from "../model.ts";
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

type SourceEvent = Pick<LedgerEvent, "what" | "detail">;

/**
 * Where the file of an arrival is now: the result of its finish, as its history has it. What was planned may have come
 * otherwise, as for a file that was overwritten before.
 */
export function currentPlace(
  { path, goneAt }: Pick<Arrival, "path" | "goneAt">,
  events: readonly SourceEvent[],
): string {
  const last = events.findLast(({ what }) => PLACE_EVENTS.includes(what))?.what ?? "";
  if (last === "source.deleted") return "deleted";
  if (last === "source.changed") return "replaced at its drop by other content, before it was finished";
  if (last === "source.gone" || last === "source.unwatched") return NOT_THERE;
  return finishedPlace(path, events) ?? (goneAt === null ? path : NOT_THERE);
}

const NOT_THERE = "no longer at its drop";
