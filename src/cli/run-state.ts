/** The state of a run as a person reads it. */
import type { Run, RunState } from "../model.ts";

/** The same bytes came before at this path (`errors.md`): the run was given up for that alone. */
const CAME_BEFORE = "HG-RUN-001";

export type ShownState = RunState | "duplicate";

/** The run's own state, but *duplicate* for one that was given up because its bytes had come before. */
export function shownState({ state, reason }: Pick<Run, "state" | "reason">): ShownState {
  return state === "cancelled" && reason?.code === CAME_BEFORE ? "duplicate" : state;
}
