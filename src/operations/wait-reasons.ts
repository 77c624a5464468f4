/** Why a run in a state waits when no other reason is known. */
import type { RunState } from "../model.ts";

const TURNS: Readonly<Partial<Record<RunState, string>>> = {
  claimed: "its turn to be fetched",
  fetched: "its turn to be mapped",
  mapping: "its mapper to end",
  mapped: "its turn to be delivered",
  delivering: "the answers of the service",
  accepted: "the service to confirm what it stored",
  unconfirmed: "the next query of what the service stored",
  opened: "its entries",
};

export function turnOf(state: RunState): string {
  return TURNS[state] ?? "its turn";
}
