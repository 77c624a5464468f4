/**
 * The answer of an earlier operation that the service repeated, since the Idempotency-Key of a batch came before: from
 * a ledger that was lost, or from another gateway. What the service has counts as delivered, and only what it lacks is
 * sent, under another key (docs/decisions/0035-keys-of-what-is-delivered.md).
 */

import type { Clock } from "#core/clock.ts";
import { type ErrorCode, HeadgateError, InvariantError, TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Batch, BatchSlice } from "../model.ts";
import type { DeliveryJournal, KeptResult } from "./delivery.ts";
import type { PushOptions } from "./options.ts";
import type { PushContext, Pushed } from "./push.ts";
import type { Delivered, ReadBack } from "./read-back.ts";
import { pauseMs } from "./retry-table.ts";

const ASKED_MAX = 10;
const ASKED_EVERY_MS = 200;
const REPEATS_HINT =
  "Another gateway with a ledger of its own takes the same files, or this ledger was lost or restored from an older " +
  "copy. Nothing is stored twice; see *Restoring a ledger* in docs/operations.md.";

interface RepeatsParts {
  readonly journal: DeliveryJournal;
  readonly delivered: ReadBack["delivered"];
  readonly options: PushOptions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Two halves, durable in the segment; null for a single reading. */
  halve(segmentPath: string, batch: Batch): Promise<readonly BatchSlice[] | null>;
}

/** The batch is to be sent under another key. */
export interface Renewed {
  readonly status: "renewed";
  readonly batch: Batch;
}

export class Repeats {
  readonly #parts: RepeatsParts;
  /** The run whose repeated answers were logged last: once each. */
  #logged: string | null = null;
  /** When each batch was first compared, where the service does not report the state of operations. */
  readonly #askedSince = new Map<string, number>();

  constructor(parts: RepeatsParts) {
    this.#parts = parts;
  }

  /** The service says that the key of the batch came before, with another operation than this attempt. */
  async after(
    batch: Batch,
    by: string,
    { context, mayRenew }: { readonly context: PushContext; readonly mayRenew: boolean },
    signal: AbortSignal,
  ): Promise<Pushed | Renewed> {
    const { journal, log } = this.#parts;
    const { operationId, runId } = batch;
    if (this.#logged !== runId) {
      this.#logged = runId;
      log.warn(
        { run: runId, operationId, repeats: by, hint: REPEATS_HINT },
        "the service had readings of a run before",
      );
    }
    const before = await this.recognise(batch, by, context, signal);
    if (before !== "absent") return before;
    if (!mayRenew) return await this.#acceptRepeat(batch, by, context, ", of which it has nothing now");
    const words = `delivered by ${nameOf(by)} before, of which the service has nothing now: sent under another key`;
    log.info({ run: runId, operationId, repeats: by, points: batch.points }, words);
    return { status: "renewed", batch: await journal.renewKey(operationId, words) };
  }

  /**
   * Accepts a batch that the service has, whatever came after it, and splits one of which it has a part. `absent`: it
   * has nothing of it, so that it is to be sent.
   */
  async recognise(batch: Batch, by: string, context: PushContext, signal: AbortSignal): Promise<Pushed | "absent"> {
    const { options, log } = this.#parts;
    const { operationId, runId } = batch;
    let seen: Delivered;
    try {
      seen = await this.#applied(batch, by, context.segmentPath, signal);
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      if (!(thrown instanceof HeadgateError) || thrown instanceof InvariantError) throw thrown;
      // Where the user may not read, only the service's word is left; the outcome says that it was not confirmed.
      const words = `; ${wordsOf(thrown)}`;
      if (!(thrown instanceof TransientError)) return await this.#acceptRepeat(batch, by, context, words);
      return kept(thrown.message, thrown.code, pauseMs(options.retry, 1));
    }
    if (seen.status === "awaited" || (seen.status === "unknown" && seen.missing > 0 && !this.#isPatient(batch))) {
      const reason = `the service repeats the answer of ${nameOf(by)}, which it has not applied yet`;
      return kept(reason, "HG-PUSH-016", options.confirm.pollEvery);
    }
    this.#askedSince.delete(operationId);
    if (seen.missing === 0) return await this.#acceptRepeat(batch, by, context, "");
    if (seen.status === "failed") return await this.#acceptRepeat(batch, by, context, ", which failed there");
    const halves = seen.missing === batch.points ? null : await this.#parts.halve(context.segmentPath, batch);
    if (halves === null) return "absent";
    const words = `${seen.missing} of its readings, which ${nameOf(by)} had delivered, are no longer at the service`;
    const { journal } = this.#parts;
    const sending = batch.state === "sending" ? batch : await journal.advanceBatch(operationId, "ready", "sending");
    const children = await journal.splitBatch(sending.operationId, halves, words, by);
    log.info({ run: runId, operationId, repeats: by, points: batch.points }, words);
    return { status: "split", children };
  }

  /** An operation that waits at the service is applied within moments, usually. */
  async #applied(batch: Batch, by: string, segmentPath: string, signal: AbortSignal): Promise<Delivered> {
    for (let asked = 1; ; asked += 1) {
      const seen = await this.#parts.delivered(by, batch, segmentPath, signal);
      if (seen.status !== "awaited" || asked === ASKED_MAX) return seen;
      await this.#parts.clock.sleep(ASKED_EVERY_MS, signal);
    }
  }

  /** Whether an operation of which the service says nothing had the time that an outcome has. */
  #isPatient({ operationId }: Batch): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    const sinceMs = this.#askedSince.get(operationId) ?? nowMs;
    this.#askedSince.set(operationId, sinceMs);
    return nowMs - sinceMs >= this.#parts.options.confirm.within;
  }

  async #acceptRepeat(batch: Batch, by: string, context: PushContext, more: string): Promise<Pushed> {
    const { journal } = this.#parts;
    const { operationId } = batch;
    const words = `already delivered by ${nameOf(by)}${more}`;
    if (batch.state === "ready") await journal.advanceBatch(operationId, "ready", "sending", { answer: words });
    const run = await journal.acceptBatch(operationId, words, context.whole, by);
    return { status: "accepted", run };
  }
}

function kept(reason: string, code: ErrorCode, retryAfterMs: number): KeptResult {
  return { status: "kept", reason, code, retryAfterMs, wholeService: false };
}

function nameOf(repeats: string): string {
  return repeats === "" ? "an earlier operation" : repeats;
}
