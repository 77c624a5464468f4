/**
 * Sends one batch: journalled before and after, judged by the retry table, split where the service's response requires
 * it.
 */
import type { Clock } from "#core/clock.ts";
import { ConfigError, type ErrorCode, HeadgateError, InvariantError, TransientError, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import { Turns } from "#core/turns.ts";
import type { PushAnswer, ServiceClient } from "#wire/client/index.ts";
import type { Batch, BatchSlice, BatchState, PushFacts, Run } from "../model.ts";
import { appendChildren } from "./children.ts";
import {
  type Admission,
  type DeliveryJournal,
  isOpenFault,
  isOpenResponse,
  type KeptResult,
  mayBeStored,
  type SegmentChanges,
  UNANSWERED,
  type WholeRun,
  withUnknownOutcome,
} from "./delivery.ts";
import { type Closure, type Gate, GateClosed, type GatedCall, TransientFailure } from "./gate.ts";
import type { PushOptions } from "./options.ts";
import type { Pace } from "./rate-limit.ts";
import type { Delivered, ReadBack } from "./read-back.ts";
import { judge, pauseMs, type Verdict } from "./retry-table.ts";
import { type SliceBody, withSlice } from "./slices.ts";

const ASKED_MAX = 10;
const ASKED_EVERY_MS = 200;
const REPEATS_HINT =
  "Another gateway with a ledger of its own takes the same files, or this ledger was lost or restored from an older " +
  "copy. Nothing is stored twice; see *Restoring a ledger* in docs/operations.md.";

const UNREACHED: ErrorCode = "HG-PUSH-001";
/** Part of the answer of a batch whose operationId the service knows with other bytes. */
export const CONFLICT_WORDS = "the service knows this operationId with other bytes";
/** Part of the answer of a batch that is not split, since an earlier attempt may be stored. */
export const UNSPLIT_WORDS = "not split, since an earlier attempt had no clear answer and may be stored";

/** Keys of a batch in one go, should a service call every key a repetition. */
const KEYS_MAX = 10;

export interface PusherParts {
  /** Name of the service. */
  readonly service: string;
  readonly client: ServiceClient;
  readonly gate: Gate;
  readonly pace: Pace;
  readonly admission?: Admission | undefined;
  /** The service recognises an Idempotency-Key: had it stored an attempt, it would say so. */
  readonly idempotency: boolean;
  readonly journal: DeliveryJournal;
  readonly segments: SegmentChanges;
  /** Compares a batch that came before, as the service says, with what is stored. */
  readonly delivered: ReadBack["delivered"];
  readonly options: PushOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly webhookUrl: string | undefined;
  readonly tracer: Tracer;
  readonly onPush?: PushObserver | undefined;
  /**
   * Called after each accepted push that named a `webhookUrl`, with the reason why the service will not send its
   * outcome there, or undefined.
   */
  readonly onWebhook?: ((refusal: string | undefined) => void) | undefined;
  /** Called when credentials or rights were refused, which a person may have corrected meanwhile. */
  readonly onRefused?: (() => void) | undefined;
}

/** Receives the facts of push calls for metrics. */
export interface PushObserver {
  pushBegins(service: string): void;
  pushEnded(push: PushFacts): void;
}

/** Result of pushing a batch. A split batch has children to send in its place. */
export type Pushed =
  /** `run`: as recorded, when this batch completed its acceptance. */
  | { readonly status: "accepted"; readonly run: Run | null }
  | { readonly status: "rejected" }
  | { readonly status: "split"; readonly children: readonly Batch[] }
  | KeptResult;

/** The run that a batch belongs to. */
export interface PushContext {
  readonly segmentPath: string;
  /** Whether refused content is still narrowed down to single readings. */
  readonly mayBisect: () => boolean;
  readonly whole: WholeRun;
}

interface Attempt {
  readonly batch: Batch;
  readonly state: BatchState;
  /** The bytes of the batch, read at the first call. */
  readonly open: () => Promise<SliceBody>;
  /** An earlier attempt may be stored. */
  readonly isUncertain: boolean;
}

interface Prepared {
  readonly sending: Batch;
  readonly body: SliceBody;
}

interface Judged {
  readonly verdict: Exclude<Verdict, "transient" | "token">;
  readonly words: string;
  /** The service repeated the answer of this operation. */
  readonly repeats: string | undefined;
  /** An earlier attempt may be stored. */
  readonly isUncertain: boolean;
}

export class BatchPusher {
  readonly #parts: PusherParts;
  readonly #splits = new Turns();
  readonly #repeats: Repeats;

  constructor(parts: PusherParts) {
    this.#parts = parts;
    this.#repeats = new Repeats({ ...parts, halve: (path, batch) => this.#append(path, batch) });
  }

  /**
   * Throws `InvariantError` when the bytes differ from the record, `TransientError` of ledger and spool, and the reason
   * of the signal when aborted: the batch then stays `sending`.
   */
  async push(batch: Batch, context: PushContext, signal: AbortSignal): Promise<Pushed> {
    return withSlice(context.segmentPath, batch, (open) => this.#pushFrom(open, batch, context, signal));
  }

  /** Under another key where the service knows the present one, and does not have the readings. */
  async #pushFrom(open: Attempt["open"], given: Batch, context: PushContext, signal: AbortSignal): Promise<Pushed> {
    if (given.repeats !== null && given.attempts === 0) {
      const before = await this.#repeats.recognise(given, given.repeats, context, signal);
      if (before !== "absent") return before;
    }
    for (let batch = given, keys = 1; ; keys += 1) {
      const pushed = await this.#pushUnderKey(open, batch, { context, mayRenew: keys < KEYS_MAX }, signal);
      if (pushed.status !== "renewed") return pushed;
      batch = pushed.batch;
    }
  }

  async #pushUnderKey(
    open: Attempt["open"],
    batch: Batch,
    means: { readonly context: PushContext; readonly mayRenew: boolean },
    signal: AbortSignal,
  ): Promise<Pushed | Renewed> {
    const { gate, pace, options, clock, admission, service } = this.#parts;
    let isUncertain = mayBeStored(batch);
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      const state = attempt === 1 ? batch.state : "sending";
      if (gate.retired) return REPLACED;
      const closed = gate.closed();
      if (closed !== null) return kept(closed, true);
      if (admission !== undefined && !(await admission.admit(batch, service, signal))) return NO_MORE;
      if (pace.isLimited) await pace.take(batch.points, signal);
      try {
        const judged = await gate.pass(this.#gated({ batch, state, open, isUncertain }, signal), signal);
        const { repeats } = judged;
        // Of an attempt whose answer was lost, the service repeats the answer as well.
        const isOwn = isUncertain && (repeats === batch.operationId || repeats === "");
        if (judged.verdict !== "accepted" || repeats === undefined || isOwn)
          return await this.#conclude(batch, means.context, judged);
        return await this.#repeats.after({ ...batch, state: "sending" }, repeats, means, signal);
      } catch (thrown) {
        if (signal.aborted) throw signal.reason;
        if (thrown instanceof GateClosed && gate.retired) return REPLACED;
        if (thrown instanceof GateClosed) {
          const now = gate.closed();
          return kept(now ?? { reason: "the service fails", code: UNREACHED, ms: options.retry.initial }, true);
        }
        if (thrown instanceof ConfigError) return this.#waitForPerson(batch, thrown);
        if (!(thrown instanceof TransientFailure)) throw thrown;
        isUncertain = thrown.isUncertain;
        const waitMs = this.#pauseAfter(thrown);
        if (attempt >= options.retry.quickAttempts || waitMs > options.retry.quickWait) {
          const failure = { reason: thrown.message, code: UNREACHED, ms: waitMs };
          return kept(failure, thrown.retryAfterMs !== null);
        }
        await clock.sleep(waitMs, signal);
      }
    }
  }

  /**
   * Reads and journals a batch shortly before its turn, and journals it again when it is not sent after all. It is not
   * read sooner because hundreds may wait for a slow service.
   */
  #gated(attempt: Attempt, signal: AbortSignal): GatedCall<Prepared, Judged> {
    const { batch, state, open, isUncertain } = attempt;
    return {
      prepare: async () => {
        const body = await open();
        const sending = await this.#parts.journal.advanceBatch(batch.operationId, state, "sending", ATTEMPTED);
        return { sending, body };
      },
      send: ({ sending, body }) => this.#send(sending, body, isUncertain, signal),
      cancel: () => this.#note(batch.operationId, this.#cancelReason(signal), isUncertain),
    };
  }

  #cancelReason(signal: AbortSignal): string {
    const { gate } = this.#parts;
    if (signal.aborted) return "not sent: delivery was stopped";
    return `not sent: ${gate.retired ? REPLACED.reason : (gate.closed()?.reason ?? "the service fails")}`;
  }

  /** Makes one call. A transient failure is a `TransientFailure`, which the breaker counts. */
  async #send(sending: Batch, body: SliceBody, isUncertain: boolean, signal: AbortSignal): Promise<Judged> {
    const { gate, options } = this.#parts;
    faultPoint("delivery.before-send");
    const answer = await this.#call(sending, body, isUncertain, signal);
    faultPoint("delivery.after-answer");
    const { words, retryAfterMs, status } = answer;
    const verdict = judge(answer);
    if (verdict === "transient" || verdict === "token") {
      const isOpen = isUncertain || isOpenResponse(verdict, status);
      const reason = `the service answered ${words}`;
      const serviceMs = retryAfterMs === null ? null : Math.min(retryAfterMs, options.retry.retryAfterMax);
      // Set before the next call has its turn: the pause holds for the whole service.
      if (serviceMs !== null) gate.hold(serviceMs, reason, UNREACHED);
      await this.#note(sending.operationId, words, isOpen);
      throw new TransientFailure(reason, sending, serviceMs, isOpen);
    }
    return { verdict, words, isUncertain, repeats: answer.repeats };
  }

  async #call(batch: Batch, body: SliceBody, isUncertain: boolean, signal: AbortSignal): Promise<PushAnswer> {
    const { client, options, webhookUrl, tracer, clock, onPush, service } = this.#parts;
    const { operationId, runId, points } = batch;
    const span = tracer.begin({
      name: "push",
      runId,
      isCall: true,
      attributes: {
        "headgate.service": service,
        "headgate.operationId": operationId,
        "headgate.points": points,
        "headgate.attempt": batch.attempts,
      },
    });
    const begunMs = clock.monotonicMs();
    onPush?.pushBegins(service);
    const report = (status: number | null) => {
      const seconds = (clock.monotonicMs() - begunMs) / 1000;
      onPush?.pushEnded({ service, operationId, traceId: span.traceId, status, seconds });
    };
    let isSent = false;
    try {
      const answer = await client.push(
        {
          body() {
            isSent = true;
            return body.open();
          },
          length: batch.length,
          operationId: batch.operationId,
          operationTimeoutSec: Math.max(1, Math.round(options.operationTimeout / 1000)),
          idempotencyKey: batch.idempotencyKey,
          webhookUrl,
          traceparent: span.traceparent,
        },
        signal,
      );
      const { status, words } = answer;
      span.end({ "http.response.status_code": status }, status < 300 ? undefined : words);
      report(status);
      if (webhookUrl !== undefined && status < 300) this.#parts.onWebhook?.(answer.webhookRefusal);
      return answer;
    } catch (thrown) {
      span.end({}, wordsOf(thrown));
      report(null);
      if (signal.aborted) throw thrown;
      const isTransient = thrown instanceof TransientError;
      const isOpen = isUncertain || (isTransient && isSent && isOpenFault(thrown));
      await this.#note(batch.operationId, wordsOf(thrown), isOpen);
      if (isTransient) throw new TransientFailure(wordsOf(thrown), batch, null, isOpen);
      throw thrown;
    }
  }

  async #conclude(batch: Batch, context: PushContext, judged: Judged): Promise<Pushed> {
    const { journal, log, idempotency } = this.#parts;
    const { operationId } = batch;
    const { verdict, words, isUncertain } = judged;
    if (verdict === "accepted") {
      const run = await journal.acceptBatch(operationId, words, context.whole);
      faultPoint("delivery.after-accept");
      log.debug({ run: batch.runId, operationId, points: batch.points }, "batch accepted");
      return { status: "accepted", run };
    }
    if (verdict === "right" || verdict === "address") {
      await this.#note(operationId, words, isUncertain);
      return this.#waitForPerson(batch, refusal(verdict, words));
    }
    // The halves would have ids of their own, so that they would be stored beside the copy that came first under this
    // id.
    if (verdict === "conflict") return this.#reject(batch, `${CONFLICT_WORDS}; ${words}`);
    if (isUncertain && !idempotency) return this.#reject(batch, `${UNSPLIT_WORDS}; ${words}`);
    const halves = verdict === "halve" || context.mayBisect() ? await this.#append(context.segmentPath, batch) : null;
    if (halves !== null) {
      const children = await journal.splitBatch(operationId, halves, words);
      faultPoint("delivery.after-split");
      log.warn({ run: batch.runId, operationId, answer: words, points: batch.points }, "batch split");
      return { status: "split", children };
    }
    const whole = batch.points > 1 ? `; refused whole, ${batch.points} readings: too many were refused` : "";
    return this.#reject(batch, `${words}${whole}`);
  }

  /** Runs one at a time: two batches of a segment may be refused at the same time. */
  async #append(segmentPath: string, batch: Batch): Promise<readonly BatchSlice[] | null> {
    const turn = this.#splits.enter();
    try {
      await turn.mine;
      return await appendChildren(segmentPath, batch, this.#parts.segments);
    } finally {
      turn.pass();
    }
  }

  async #reject({ operationId, runId, points }: Batch, answer: string): Promise<Pushed> {
    const { journal, log } = this.#parts;
    await journal.advanceBatch(operationId, "sending", "rejected", { answer });
    log.warn({ run: runId, operationId, answer, points }, "batch rejected");
    return { status: "rejected" };
  }

  /** Milliseconds to wait. */
  #pauseAfter(failure: TransientFailure): number {
    const { options, log } = this.#parts;
    const backoff = pauseMs(options.retry, failure.batch.attempts);
    const { operationId, runId, attempts } = failure.batch;
    log.info({ run: runId, operationId, attempts, reason: failure.message }, "a push failed; it is tried again");
    if (failure.retryAfterMs === null) return backoff;
    return Math.max(failure.retryAfterMs, Math.min(backoff, options.retry.quickWait));
  }

  #waitForPerson(batch: Batch, error: ConfigError): KeptResult {
    const { gate, options, log } = this.#parts;
    const reason = `${error.message}. ${error.hint}`;
    const { operationId, runId } = batch;
    log.error({ code: error.code, run: runId, operationId, hint: error.hint }, error.message);
    gate.hold(options.retry.refused, reason, error.code);
    this.#parts.onRefused?.();
    return kept({ reason, code: error.code, ms: options.retry.refused }, true);
  }

  async #note(operationId: string, words: string, isUncertain: boolean): Promise<void> {
    const answer = withUnknownOutcome(words, isUncertain);
    await this.#parts.journal.advanceBatch(operationId, "sending", "sending", { answer });
  }
}

const ATTEMPTED = { attempted: true, answer: UNANSWERED } as const;

/** The run resumes at once with the delivery that replaced this one. */
const REPLACED: KeptResult = {
  status: "kept",
  reason: "the configuration of the service was replaced",
  code: UNREACHED,
  retryAfterMs: 0,
  wholeService: false,
};

/** The gateway is shutting down. */
const NO_MORE: KeptResult = { ...REPLACED, reason: "no further push is sent" };

function kept({ reason, code, ms }: Closure, wholeService: boolean): KeptResult {
  return { status: "kept", reason, code, retryAfterMs: ms, wholeService };
}

function refusal(verdict: "right" | "address", words: string): ConfigError {
  return new ConfigError(verdict === "right" ? "HG-PUSH-008" : "HG-PUSH-009", {
    operation: "push",
    subject: "service",
    message:
      verdict === "right"
        ? `the user may not push: ${words}`
        : `the push address does not answer as the service: ${words}`,
  });
}

// The answer of an earlier operation that the service repeated, since the Idempotency-Key of a batch came before: from
// a ledger that was lost, or from another gateway. What the service has counts as delivered, and only what it lacks is
// sent, under another key (docs/dev/decisions/0035-keys-of-what-is-delivered.md).

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
interface Renewed {
  readonly status: "renewed";
  readonly batch: Batch;
}

class Repeats {
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
      return kept({ reason: thrown.message, code: thrown.code, ms: pauseMs(options.retry, 1) }, false);
    }
    if (seen.status === "awaited" || (seen.status === "unknown" && seen.missing > 0 && !this.#isPatient(batch))) {
      const reason = `the service repeats the answer of ${nameOf(by)}, which it has not applied yet`;
      return kept({ reason, code: "HG-PUSH-016", ms: options.confirm.pollEvery }, false);
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

function nameOf(repeats: string): string {
  return repeats === "" ? "an earlier operation" : repeats;
}
