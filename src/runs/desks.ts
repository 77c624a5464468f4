/** The desks of the conductor: which runs come to each, and with how many hands. */
import type { Run, RunState } from "../model.ts";

export interface ConductorOptions {
  /** Runs fetched and mapped side by side. */
  readonly intakeHands: number;
  /** Of these, at most so many of one drop. */
  readonly intakePerDrop: number;
  /** Runs delivered side by side, for each service. */
  readonly deliveryHands: number;
}

export interface Desk {
  readonly name: string;
  /** For each service at the desk of delivery, otherwise altogether. */
  hands: number;
  /** At most so many of one drop. */
  readonly perDrop: number;
  /** What takes turns. */
  readonly by: "drop" | "lane";
  readonly states: readonly RunState[];
  /** Of these, only runs whose source was not finished, or for which something is still awaited. */
  readonly only: { readonly unfinished?: boolean; readonly unsettled?: boolean };
  /** Runs in hand. */
  readonly inHand: Map<string, Run>;
  /** Where the next turn begins. */
  turn: number;
  /** No run is there before that, unless one comes or somebody tells. */
  emptyUntilMs: number;
}

/** For a desk that hardly ever has a run, the ledger is not asked at every look. */
export const EMPTY_MS = 30_000;

const CLOSING_HANDS = 4;
const HELD_HANDS = 2;

export const AT_REST: readonly RunState[] = ["confirmed", "empty", "discarded", "quarantined", "cancelled"];

export function openDesks(options: ConductorOptions): readonly Desk[] {
  const desk = (
    facts: Pick<Desk, "name" | "hands" | "by" | "states"> & {
      readonly only?: Desk["only"];
      readonly perDrop?: number;
    },
  ): Desk => ({
    only: {},
    perDrop: Number.POSITIVE_INFINITY,
    ...facts,
    inHand: new Map(),
    turn: 0,
    emptyUntilMs: 0,
  });
  return [
    desk({
      name: "intake",
      hands: options.intakeHands,
      perDrop: options.intakePerDrop,
      by: "drop",
      states: ["claimed", "fetched"],
    }),
    desk({ name: "delivery", hands: options.deliveryHands, by: "lane", states: ["mapped", "delivering"] }),
    desk({
      name: "containers",
      hands: CLOSING_HANDS,
      by: "drop",
      states: ["opened"],
      only: { unsettled: true },
    }),
    desk({ name: "held", hands: HELD_HANDS, by: "lane", states: ["held"] }),
    desk({
      name: "confirming",
      hands: CLOSING_HANDS,
      by: "lane",
      states: ["accepted"],
      only: { unsettled: true },
    }),
    desk({
      name: "finishing",
      hands: CLOSING_HANDS,
      by: "drop",
      states: AT_REST,
      only: { unfinished: true },
    }),
  ];
}
