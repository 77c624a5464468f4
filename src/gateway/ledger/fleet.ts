/**
 * The part of the ledger about the gateways that share it. Each is a *node*, and lives as long as it renews
 * its lease. A node whose lease lapsed has lost its drops and runs, and its later writes for a run or a poll
 * are refused with `HG-LEDG-010` (`isLeaseLost`). A ledger that one process owns has one node, which holds
 * everything.
 */

import type { Clock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import type { IsoInstant, Run } from "../model.ts";

export interface Fleet {
  /**
   * Milliseconds after which a node should try again to get drops and runs of other nodes; null when there is
   * no other node.
   */
  readonly recheckMs: number | null;
  /** Claims the drop for this node: null on success, otherwise the name of the node that polls it. */
  holdDrop(drop: string): Promise<string | null>;
  /**
   * For a drop that this node no longer has: another node may poll it, and take its runs that are not
   * fetched. Does nothing for a drop of another node.
   */
  releaseDrop(drop: string): Promise<void>;
  /**
   * Throws when this node no longer polls the drop. Called right before an action at the drop that cannot be
   * undone.
   */
  assertDrop(drop: string): Promise<void>;
  /** Claims the run for this node, and returns its present record. Null while another node works on it. */
  holdRun(run: Run): Promise<Run | null>;
  /**
   * For a run whose next step is impossible on this node: another node may take it. False when there is no
   * other node.
   */
  releaseRun(id: string): Promise<boolean>;
  /**
   * Throws when this node no longer works on the run. Called right before an action that cannot be undone.
   */
  assertRun(id: string): Promise<void>;
  /**
   * Does the work while no other process with this ledger open, reader or node, does work under the same key.
   * Waits for its turn until `signal` ends, or until others have held it for too long (`TransientError`
   * HG-LEDG-012): a sleeping process keeps its turn. The work's own signal also ends when the turn is lost
   * with the connection, since another process may begin then.
   */
  alone<Result>(key: string, work: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** All nodes that renewed a lease recently, by name. */
  nodes(): Promise<readonly NodeState[]>;
}

export interface NodeState {
  readonly node: string;
  readonly since: IsoInstant;
  /** Time of its last renewal. */
  readonly lastSeenAt: IsoInstant;
  /** False when it has ended, or its lease has lapsed. */
  readonly alive: boolean;
  readonly drops: readonly string[];
  /** Number of runs it works on. */
  readonly runs: number;
}

/** Notifications to a node about its own lease and about other nodes. */
export interface FleetWatch {
  /** The lease had lapsed: this node has lost the drops and runs that it worked on. */
  readonly onLost: () => void;
  /** A node has ended; its drops and runs can be taken. */
  readonly onLeft: (node: string) => void;
}

const TURN_EVERY_MS = 50;
const TURN_WITHIN_MS = 10_000;

/** For `alone`: polls until the turn is granted, which is true or a lock. */
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
        message: `another process has held it for more than ${TURN_WITHIN_MS / 1000} seconds: ${key}`,
      });
    await clock.sleep(TURN_EVERY_MS, signal);
    signal.throwIfAborted();
  }
}

export const LONE_NODE: Omit<Fleet, "alone"> = {
  recheckMs: null,
  holdDrop: async () => null,
  releaseDrop: async () => undefined,
  assertDrop: async () => undefined,
  holdRun: async (run) => run,
  releaseRun: async () => false,
  assertRun: async () => undefined,
  nodes: async () => [],
};
