/**
 * What of the ledger is about the gateways that share it. Each is a *node*; it lives as long as it renews its lease. Who does not has
 * lost all that it held, and whatever it then writes for a run or a poll is refused with `HG-LEDG-010` (`isLeaseLost`).
 * A ledger that one process owns has one node, which holds everything.
 */
import type { IsoInstant, Run } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { TransientError } from "../support/errors.ts";

export interface Fleet {
  /** Milliseconds after which it is worth while to ask again for what another node holds; null when there is no other. */
  readonly lookAgainMs: number | null;
  /** From now on this node polls the drop: null. Or the name of the node that does. */
  holdDrop(drop: string): Promise<string | null>;
  /** This node does not know the drop any more: another may poll it, and take its runs that are not fetched. Nothing when it is another's. */
  releaseDrop(drop: string): Promise<void>;
  /** Throws when this node does not poll the drop any more. Asked right before something at it that cannot be undone. */
  assertDrop(drop: string): Promise<void>;
  /** From now on this node works on the run, as it stands now. Null while another does. */
  holdRun(run: Run): Promise<Run | null>;
  /** This node lacks what the run needs next: another may take it. False when there is no other. */
  releaseRun(id: string): Promise<boolean>;
  /** Throws when this node does not work on the run any more. Asked right before something that cannot be undone. */
  assertRun(id: string): Promise<void>;
  /**
   * Does the work while nobody else who has this ledger open, reader or node, does some under the same key. Waits for its turn, until
   * `signal` ends, or others have kept it for long (`TransientError` HG-LEDG-012): a process that sleeps does not give it up. The work's
   * own signal also ends when its turn is lost, with the connection: another may begin then.
   */
  alone<Result>(
    key: string,
    work: (signal: AbortSignal) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result>;
  /** All that were heard of lately, by name. */
  nodes(): Promise<readonly NodeState[]>;
}

export interface NodeState {
  readonly node: string;
  readonly since: IsoInstant;
  /** When it was last heard of. */
  readonly heardOf: IsoInstant;
  /** False when it has ended, or its lease has lapsed. */
  readonly alive: boolean;
  readonly drops: readonly string[];
  /** Runs that it works on. */
  readonly runs: number;
}

/** What a node is told of its own lease and of others'. */
export interface FleetWatch {
  /** It had lapsed: what was in hand is not this node's any more. */
  readonly onLost: () => void;
  /** A node has ended; what it held can be taken. */
  readonly onLeft: (node: string) => void;
}

const TURN_EVERY_MS = 50;
const TURN_WITHIN_MS = 10_000;

/** For `alone`: asks until the turn is given, which is true or a lock. */
export async function waitForTurn<Turn>(
  ask: () => Turn | null | Promise<Turn | null>,
  key: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Turn> {
  const lastMs = clock.monotonicMs() + TURN_WITHIN_MS;
  for (let turn = await ask(); ; turn = await ask()) {
    if (turn !== null) return turn;
    if (clock.monotonicMs() > lastMs)
      throw new TransientError("HG-LEDG-012", {
        operation: "wait for a turn",
        subject: key,
        message: `another process is at it since more than ${TURN_WITHIN_MS / 1000} seconds: ${key}`,
      });
    await clock.sleep(TURN_EVERY_MS, signal);
    signal.throwIfAborted();
  }
}

export const LONE_NODE: Omit<Fleet, "alone"> = {
  lookAgainMs: null,
  holdDrop: async () => null,
  releaseDrop: async () => undefined,
  assertDrop: async () => undefined,
  holdRun: async (run) => run,
  releaseRun: async () => false,
  assertRun: async () => undefined,
  nodes: async () => [],
};
