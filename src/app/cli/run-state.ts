/** The state of a run as a person reads it. */
import type { Run, RunState } from "#gateway/model.ts";
import { ALL_RUN_STATES, RUN_STATES, type RunFacts } from "#gateway/states.ts";
import { type Style, styled } from "./output.ts";

/** The same bytes came before at this path (`errors.md`): the run was given up for this reason only. */
const CAME_BEFORE = "HG-RUN-001";

export type ShownState = RunState | "duplicate";

export const SHOWN_STATES: readonly ShownState[] = [...ALL_RUN_STATES, "duplicate"];

const STYLES: Readonly<Record<RunFacts["tone"], Style | null>> = {
  plain: null,
  good: "green",
  warning: "yellow",
  bad: "red",
  faint: "dim",
};

/** In the colour that says how well a run stands. */
export function inTone(state: ShownState): string {
  const style = STYLES[state === "duplicate" ? "faint" : RUN_STATES[state].tone];
  return style === null ? state : styled(style, state);
}

/** The run's own state, but *duplicate* for one that was given up because its bytes had come before. */
export function shownState({ state, reason }: Pick<Run, "state" | "reason">): ShownState {
  return state === "cancelled" && reason?.code === CAME_BEFORE ? "duplicate" : state;
}
