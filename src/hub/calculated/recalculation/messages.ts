/** Messages between the thread of recalculation and the main thread of the hub. */
import type { MessagePort } from "node:worker_threads";
import type { HubOptions } from "../../options.ts";
import type { HandedPart, RunEnd } from "./run.ts";

export interface RecalculationData {
  readonly store: HubOptions["store"];
  readonly calculated: HubOptions["calculated"];
  readonly node: string;
  /** A fault point to arm in the thread, for tests; otherwise null. */
  readonly fault: string | null;
}

/** The only task of the thread. */
export interface RecalculationTask {
  readonly port: MessagePort;
}

export type ToThread =
  | { readonly type: "wake" }
  | { readonly type: "stop" }
  /** The part with this number was accepted, or could not be (with the words). */
  | { readonly type: "accepted"; readonly part: number; readonly fault: string | null };

export type FromThread =
  | { readonly type: "part"; readonly part: number; readonly handed: HandedPart }
  | {
      readonly type: "ended";
      readonly calculationId: number;
      readonly accountId: number;
      readonly variableId: number;
      readonly end: RunEnd;
      readonly seconds: number;
    }
  | { readonly type: "trouble"; readonly message: string };
