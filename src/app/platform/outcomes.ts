/**
 * Reports the outcomes of the gateway's pushes from the hub's own records. A report that is lost is made up for by
 * reading back, as at any service.
 */

import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { FileEvent } from "#gateway/gateway.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Outcome } from "#gateway/model.ts";
import { BATCH_STATES, runStatesThat } from "#gateway/states.ts";
import type { OperationStore } from "#hub/store/operations.ts";

/** The hub applies operations of an account in their order, so that the first ones end first, and accounts by turns. */
const ASKED_AT_ONCE = 50;
const ASK_FIRST_MS = 25;
const ASK_LAST_MS = 1_000;
/** Runs of an earlier process whose outcomes are asked for; those of others are read back. */
const EARLIER_MAX = 1_000;

export interface OutcomesParts {
  readonly operations: Pick<OperationStore, "operation">;
  /** The account of a drop; undefined for none of the hub's. */
  accountOf(drop: string): number | undefined;
  readonly ledger: Pick<Ledger, "runsIn" | "batches">;
  report(outcome: Outcome): Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Outcomes {
  readonly #parts: OutcomesParts;
  /** Operation ids by account, in the order of the acceptance. */
  readonly #awaited = new Map<number, Set<string>>();
  /** Runs that this node took over. */
  readonly #taken = new Map<string, number>();
  readonly #stop = new AbortController();
  #rest = new AbortController();
  #loop: Promise<void> | null = null;

  constructor(parts: OutcomesParts) {
    this.#parts = parts;
  }

  note({ what, drop, operationId, runId }: Pick<FileEvent, "what" | "drop" | "operationId" | "runId">): void {
    const accountId = this.#parts.accountOf(drop);
    if (accountId === undefined) return;
    if (what === "batch.accepted" && operationId !== null) this.#await(accountId, operationId);
    else if (what === "run.taken" && runId !== null) this.#taken.set(runId, accountId);
    else return;
    this.#rest.abort();
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#rest.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    let pauseMs = ASK_FIRST_MS;
    await this.#addEarlier().catch((thrown: unknown) =>
      log.warn({ err: thrown }, "operations from before the start could not be listed; their outcomes are read back"),
    );
    while (!this.#stop.signal.aborted) {
      this.#rest = new AbortController();
      if (this.#awaited.size + this.#taken.size === 0) await clock.sleep(Number.MAX_SAFE_INTEGER, this.#rest.signal);
      await clock.sleep(pauseMs, this.#stop.signal);
      try {
        await this.#addTaken();
        const found = await this.#ask();
        pauseMs = found > 0 ? ASK_FIRST_MS : Math.min(pauseMs * 2, ASK_LAST_MS);
      } catch (thrown) {
        log.warn({ err: thrown }, `outcomes are not known yet: ${wordsOf(thrown)}`);
        pauseMs = ASK_LAST_MS;
      }
    }
  }

  async #addEarlier(): Promise<void> {
    const { ledger, accountOf } = this.#parts;
    const awaited = runStatesThat(({ isAwaited }) => isAwaited);
    for (const run of await ledger.runsIn(awaited, { unsettled: true, ours: true, limit: EARLIER_MAX })) {
      const accountId = accountOf(run.drop);
      if (accountId === undefined) continue;
      await this.#addRun(run.id, accountId);
    }
  }

  async #addTaken(): Promise<void> {
    for (const [runId, accountId] of this.#taken) {
      await this.#addRun(runId, accountId);
      this.#taken.delete(runId);
    }
  }

  async #addRun(runId: string, accountId: number): Promise<void> {
    for (const { operationId, state, outcome } of await this.#parts.ledger.batches(runId))
      if (outcome === null && !BATCH_STATES[state].isUnanswered) this.#await(accountId, operationId);
  }

  #await(accountId: number, operationId: string): void {
    const own = this.#awaited.get(accountId) ?? new Set();
    this.#awaited.set(accountId, own.add(operationId));
  }

  /** Returns how many were found. The accounts that are asked for go to the back. */
  async #ask(): Promise<number> {
    const share = Math.ceil(ASKED_AT_ONCE / Math.max(1, this.#awaited.size));
    let found = 0;
    for (const [accountId, own] of [...this.#awaited].slice(0, ASKED_AT_ONCE)) {
      for (const operationId of [...own.values().take(share)])
        if (await this.#askFor(accountId, operationId, own)) found += 1;
      this.#awaited.delete(accountId);
      if (own.size > 0) this.#awaited.set(accountId, own);
    }
    return found;
  }

  async #askFor(accountId: number, operationId: string, awaited: Set<string>): Promise<boolean> {
    const { operations, report, clock } = this.#parts;
    const operation = await operations.operation(accountId, operationId);
    if (operation !== null && operation.outcome === null) return false;
    awaited.delete(operationId);
    if (operation?.outcome == null) return false;
    const { received, stored, discarded } = operation.outcome;
    await report({
      operationId,
      by: "webhook",
      received,
      stored,
      discarded: discarded.map(({ target, reason, count }) => ({ target, reason, points: count })),
      at: isoInstant(clock.now()),
    });
    return true;
  }
}
