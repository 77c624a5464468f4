/** Delivery to one service: its runs, batch by batch, in order. */
import { type Clock, type ClockSeen, systemClock } from "#core/clock.ts";
import { ConfigError, HeadgateError, InvariantError, RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { REGISTER } from "#core/register.ts";
import { type Tracer, untraced } from "#core/trace-context.ts";
import { type ClientOptions, ServiceClient } from "#wire/client/index.ts";
import type { PushTarget } from "#wire/push.ts";
import { identifierKind, targetWords } from "#wire/target.ts";
import { type ListedUnit, namesUnit, UNITS } from "#wire/units.ts";
import type { Batch, RejectedRow, Run, TargetFacts, TargetFinding } from "../model.ts";
import { BATCH_STATES } from "../states.ts";
import { parseElements, restoreChildren } from "./children.ts";
import type {
  Admission,
  Delivery,
  DeliveryJournal,
  DeliveryResult,
  DeliveryStart,
  GuardRule,
  Inspection,
  KeptResult,
  OpenOtherDeliveries,
  ReadBackResult,
  SegmentChanges,
} from "./delivery.ts";
import { Gate } from "./gate.ts";
import type { PushOptions, ServiceOptions } from "./options.ts";
import { type ProbeLine, probeService } from "./probe.ts";
import { BatchPusher, CONFLICT_WORDS, type PushContext, type PushObserver, UNSPLIT_WORDS } from "./push.ts";
import { Pace } from "./rate-limit.ts";
import { ReadBack } from "./read-back.ts";
import { type Backoff, pauseMs } from "./retry-table.ts";
import { readSlice } from "./slices.ts";
import { type MatchedVariable, type Meaning, type ResolveOptions, TargetResolver, variableOf } from "./targets.ts";

export interface DeliveryParts extends Pick<ClientOptions, "mint" | "traceLink"> {
  readonly journal: DeliveryJournal;
  readonly segments: SegmentChanges;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Where the service posts outcomes; null where no webhook can reach this gateway. */
  readonly webhook?: { readonly url: string } | null;
  readonly tracer?: Tracer;
  /** Called after each push call. */
  readonly onPush?: PushObserver;
  /** Called when credentials, scope or rights were refused: a person may have corrected them meanwhile. */
  readonly onRefused?: () => void;
  /** Absent: every push is admitted. */
  readonly admission?: Admission | undefined;
}

/** Longest pause of the read interface after a failure; pushes have a pause of their own. */
const PAUSE_MAX_MS = 60_000;
/** Pause after a refusal that a person has to resolve. */
const REFUSED_MS = 30_000;
/** Without the right to read, each query may cost a token. */
const UNREADABLE_MS = 5 * 60_000;
const UNITS_MS = 60 * 60_000;
const SHOWN = 5;

/** Connections beside those of pushes: token, reading back. */
const READ_CONNECTIONS = 2;
/** Limit on rejected readings that are reported one by one. */
const ROWS_MAX = 1000;

export function createDelivery(service: ServiceOptions, push: PushOptions, parts: DeliveryParts): Delivery {
  return new ServiceDelivery(service, push, parts);
}

class ServiceDelivery implements Delivery {
  readonly service: string;
  readonly #client: ServiceClient;
  readonly #account: string | undefined;
  readonly #apiVersion: string;
  readonly #auth: ServiceOptions["auth"];
  readonly #push: PushOptions;
  readonly #journal: DeliveryJournal;
  readonly #segments: SegmentChanges;
  readonly #clock: Clock;
  readonly #pusher: BatchPusher;
  readonly #targets: TargetResolver;
  readonly #guard: Guard;
  readonly #readBack: ReadBack;
  /** Reading back is the only source of outcomes. */
  readonly #readsBack: boolean;
  readonly #gate: Gate;
  readonly #log: Logger;
  readonly #onRefused: (() => void) | undefined;
  /** The latest reported refusal of the webhook. */
  #refusal: string | null = null;
  readonly #running = new Set<Promise<unknown>>();
  readonly #webhookUrl: string | undefined;
  #webhookRefusal: string | null = null;

  constructor(service: ServiceOptions, push: PushOptions, parts: DeliveryParts) {
    const clock = parts.clock ?? systemClock;
    const log = parts.log.child({ service: service.name });
    this.service = service.name;
    this.#log = log;
    this.#onRefused = parts.onRefused;
    this.#account = service.account;
    this.#apiVersion = service.apiVersion;
    this.#auth = service.auth;
    this.#push = push;
    this.#journal = parts.journal;
    this.#segments = parts.segments;
    this.#clock = clock;
    const own = { connections: push.concurrency + READ_CONNECTIONS, timeouts: push.timeouts, clock };
    this.#client = new ServiceClient(service, { ...own, mint: parts.mint, traceLink: parts.traceLink });
    this.#gate = new Gate(
      { ...push.retry, concurrency: push.concurrency, breakerFailures: push.retry.breakerFailures },
      clock,
    );
    const webhookUrl = parts.webhook?.url;
    this.#webhookUrl = webhookUrl;
    this.#targets = new TargetResolver(this.#client, clock, push.guard.remember);
    const readBack = new ReadBack(this.#client, parts, clock, this.#targets);
    this.#readBack = readBack;
    this.#pusher = new BatchPusher({
      client: this.#client,
      gate: this.#gate,
      pace: new Pace(push.drainRate, clock),
      admission: parts.admission,
      journal: parts.journal,
      segments: parts.segments,
      delivered: (...batch) => readBack.delivered(...batch),
      options: push,
      clock,
      log,
      webhookUrl,
      idempotency: service.idempotency,
      service: service.name,
      tracer: parts.tracer ?? untraced,
      onPush: parts.onPush,
      onRefused: parts.onRefused,
      onWebhook: (refusal) => this.#noteWebhook(refusal ?? null),
    });
    this.#readsBack = webhookUrl === undefined && push.confirm.by !== "none";
    const { future, past } = service.ingestion;
    const rule = { futureMs: future, pastMs: past, idempotency: service.idempotency };
    this.#guard = new Guard({
      client: this.#client,
      targets: this.#targets,
      clock,
      rule,
      backoff: push.retry,
    });
  }

  deliver(run: Run, segmentPath: string, signal: AbortSignal, start: DeliveryStart = {}): Promise<DeliveryResult> {
    return this.#count(this.#deliverOrKeep(run, segmentPath, signal, start));
  }

  #count<Value>(call: Promise<Value>): Promise<Value> {
    const counted = call.finally(() => this.#running.delete(counted));
    this.#running.add(counted);
    return counted;
  }

  async #deliverOrKeep(
    run: Run,
    segmentPath: string,
    signal: AbortSignal,
    { batches, finishPlan }: DeliveryStart,
  ): Promise<DeliveryResult> {
    const service = this.service;
    const whole = finishPlan == null ? { service } : { service, finishPlan };
    try {
      const known = batches ?? (await this.#journal.batches(run.id));
      return await this.#deliver(run, known, { segmentPath, whole }, signal);
    } catch (thrown) {
      if (signal.aborted) return STOPPED;
      if (!(thrown instanceof TransientError)) throw thrown;
      return {
        status: "kept",
        reason: wordsOf(thrown),
        code: thrown.code,
        retryAfterMs: pauseMs(this.#push.retry, 1),
        wholeService: false,
      };
    }
  }

  async #deliver(
    run: Run,
    batches: readonly Batch[],
    { segmentPath, whole }: Pick<PushContext, "segmentPath" | "whole">,
    signal: AbortSignal,
  ): Promise<DeliveryResult> {
    await restoreChildren(segmentPath, batches, this.#segments);
    let refused = batches.filter((batch) => batch.state === "rejected").length;
    const mayBisect = () => refused < this.#push.retry.refusedReadings;
    const context: PushContext = { segmentPath, mayBisect, whole };
    const waiting = batches.filter(isWaiting).reverse();
    const known: { kept: KeptResult | null; recorded: Run | null } = { kept: null, recorded: null };
    let stopped = false;
    // A reading is in one batch of its run, so that its batches need no order; the gate limits the calls.
    const sendOn = async () => {
      try {
        for (let batch = waiting.pop(); batch !== undefined && !stopped; batch = waiting.pop()) {
          const pushed = await this.#pusher.push(batch, context, signal);
          if (pushed.status === "split") waiting.push(...pushed.children.toReversed());
          if (pushed.status === "rejected") refused += 1;
          if (pushed.status === "accepted") known.recorded ??= pushed.run;
          if (pushed.status !== "kept") continue;
          known.kept = pushed;
          stopped = true;
        }
      } catch (thrown) {
        stopped = true;
        throw thrown;
      }
    };
    const senders = Array.from({ length: Math.min(this.#push.concurrency, waiting.length) }, sendOn);
    // All calls of the run have ended before its fault is reported.
    for (const ended of await Promise.allSettled(senders)) if (ended.status === "rejected") throw ended.reason;
    if (known.kept !== null) return known.kept;
    return known.recorded === null ? await this.#total(run, segmentPath) : accepted(known.recorded);
  }

  /** Totals count the leaves, also those of earlier calls (invariant 3). */
  async #total(run: Run, segmentPath: string): Promise<DeliveryResult> {
    const leaves = (await this.#journal.batches(run.id)).filter((batch) => batch.state !== "split");
    const accepted = leaves.filter((batch) => batch.state === "accepted");
    const rejected = leaves.filter((batch) => batch.state === "rejected");
    if (accepted.length + rejected.length !== leaves.length)
      throw new InvariantError("HG-BUG-001", {
        operation: "deliver",
        subject: run.id,
        message: "a batch was neither accepted nor rejected after all were sent",
      });
    if (rejected.length === 0) return { status: "accepted", points: sumPoints(accepted) };
    return {
      status: "rejected",
      accepted: sumPoints(accepted),
      rejected: sumPoints(rejected),
      faults: rejected.map(({ operationId, answer }) => ({ operationId, answer: answer ?? "" })),
      rows: rejectedRows(rejected.slice(0, ROWS_MAX), segmentPath),
    };
  }

  readBack(run: Run, segmentPath: string, signal: AbortSignal, others?: OpenOtherDeliveries): Promise<ReadBackResult> {
    return this.#count(this.#readBack.read(run, segmentPath, signal, others));
  }

  async inspect(facts: readonly TargetFacts[], signal: AbortSignal, options?: ResolveOptions): Promise<Inspection> {
    const seen = await this.#count(this.#guard.inspect(facts, signal, options));
    if (seen.status !== "unknown" || seen.code === "HG-GUARD-006") this.#refusal = null;
    else if (this.#refusal !== seen.reason) {
      this.#refusal = seen.reason;
      this.#log.error({ code: seen.code, hint: REGISTER[seen.code].hint }, seen.reason);
      this.#onRefused?.();
    }
    return seen;
  }

  get webhookRefusal(): string | null {
    return this.#webhookRefusal;
  }

  get clockSeen(): ClockSeen | null {
    return this.#client.clockSeen;
  }

  #noteWebhook(refusal: string | null): void {
    if (refusal === this.#webhookRefusal) return;
    this.#webhookRefusal = refusal;
    if (refusal === null) this.#log.info("the service sends outcomes to the webhook again");
    else this.#log.warn({ answer: refusal }, "the service refuses the webhook of this gateway; outcomes are read back");
  }

  forgetStructure(): void {
    this.#guard.forget();
  }

  probe(signal: AbortSignal): Promise<readonly ProbeLine[]> {
    const parts = {
      client: this.#client,
      clock: this.#clock,
      account: this.#account,
      readsBack: this.#readsBack,
      apiVersion: this.#apiVersion,
      auth: this.#auth,
      webhookUrl: this.#webhookUrl,
    };
    return probeService(parts, signal);
  }

  async retire(): Promise<void> {
    this.#gate.retire();
    while (this.#running.size > 0) await Promise.allSettled([...this.#running]);
  }

  close(): Promise<void> {
    this.#targets.close();
    return this.#client.close();
  }
}

const STOPPED: KeptResult = {
  status: "kept",
  reason: "stopped",
  code: "HG-PUSH-001",
  retryAfterMs: 0,
  wholeService: false,
};

function isWaiting({ state }: Batch): boolean {
  return BATCH_STATES[state].isUnanswered;
}

function accepted(recorded: Run): DeliveryResult {
  return { status: "accepted", points: recorded.points.accepted, recorded };
}

function sumPoints(batches: readonly Batch[]): number {
  return batches.reduce((sum, batch) => sum + batch.points, 0);
}

function rejectedRows(rejected: readonly Batch[], segmentPath: string): readonly RejectedRow[] {
  const rows: RejectedRow[] = [];
  for (const batch of rejected) {
    const [element] = parseElements(readSlice(segmentPath, batch));
    const reading = element?.data[0];
    const more = batch.points > 1 ? ` and ${batch.points - 1} more` : "";
    const words = element === undefined ? "" : targetWords(element);
    const text = reading === undefined ? words : `${words} ${reading.date} ${reading.value}${more}`;
    const message = batch.answer ?? "";
    const code = codeOf(message);
    rows.push(
      code === "HG-PUSH-012"
        ? { code, message, place: { text } }
        : { code, message, hint: REGISTER[code].hint, place: { text } },
    );
  }
  return rows;
}

function codeOf(answer: string): "HG-PUSH-012" | "HG-PUSH-014" | "HG-PUSH-015" {
  if (answer.startsWith(CONFLICT_WORDS)) return "HG-PUSH-014";
  return answer.startsWith(UNSPLIT_WORDS) ? "HG-PUSH-015" : "HG-PUSH-012";
}

// The guard before the first push: finds readings that the service would accept with a 200 and then store nowhere,
// twice, or in a wrong unit (specification, *Errors*, silent failures). The guard reports; the trigger decides what
// follows.

interface GuardParts {
  readonly client: ServiceClient;
  readonly targets: TargetResolver;
  readonly clock: Clock;
  readonly rule: GuardRule;
  readonly backoff: Backoff;
}

class Guard {
  readonly #parts: GuardParts;
  #units: { readonly byId: ReadonlyMap<number, ListedUnit>; readonly untilMs: number } | null = null;
  #pause: { readonly ms: number; readonly untilMs: number; readonly result: Inspection } | null = null;

  constructor(parts: GuardParts) {
    this.#parts = parts;
  }

  /** Errors of the read interface are results; an abort is thrown. */
  async inspect(facts: readonly TargetFacts[], signal: AbortSignal, options: ResolveOptions = {}): Promise<Inspection> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#pause !== null && nowMs < this.#pause.untilMs) return this.#pause.result;
    try {
      const seen = await this.#look(facts, signal, options);
      this.#pause = null;
      return seen;
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof HeadgateError)) throw thrown;
      return this.#unseen(thrown);
    }
  }

  /** The next check queries the service again. */
  forget(): void {
    this.#parts.targets.forget();
    this.#units = null;
    this.#pause = null;
  }

  #unseen(error: HeadgateError): Inspection {
    // Without the right to read no query will ever succeed; the token itself is valid.
    if (error.code === "HG-PUSH-007" || error.code === "HG-PUSH-008")
      return this.#leaveAlone(UNREADABLE_MS, { status: "unreadable", reason: wordsOf(error) });
    if (!(error instanceof TransientError || error instanceof ConfigError || error instanceof RejectedError))
      throw error;
    const passing = error instanceof TransientError;
    const { initial, max } = this.#parts.backoff;
    const ms = passing ? Math.min(PAUSE_MAX_MS, max, (this.#pause?.ms ?? initial / 2) * 2) : REFUSED_MS;
    return this.#leaveAlone(ms, {
      status: "unknown",
      code: passing || error instanceof RejectedError ? "HG-GUARD-006" : error.code,
      reason: `targets cannot be checked now: ${wordsOf(error)}`,
      retryAfterMs: ms,
    });
  }

  /** Returns this result to every caller until the pause ends. */
  #leaveAlone(ms: number, result: Inspection): Inspection {
    this.#pause = { ms, untilMs: this.#parts.clock.monotonicMs() + ms, result };
    return result;
  }

  async #look(facts: readonly TargetFacts[], signal: AbortSignal, options: ResolveOptions): Promise<Inspection> {
    const meanings = await this.#parts.targets.resolve(
      facts.map(({ target }) => target),
      signal,
      options,
    );
    const units = facts.some(({ unit }) => unit !== undefined) ? await this.#unitsById(signal) : new Map();
    const meaningOf = ({ target }: TargetFacts) => meanings.get(targetWords(target));
    return {
      status: "seen",
      findings: facts.flatMap((one) => this.#judge(one, meaningOf(one), units)),
      missing: facts.filter((one) => variableOf(meaningOf(one)) === null),
    };
  }

  #judge(
    facts: TargetFacts,
    meaning: Meaning | undefined,
    units: ReadonlyMap<number, ListedUnit>,
  ): readonly TargetFinding[] {
    const { target, points } = facts;
    const finding = (what: TargetFinding["what"], words: string): TargetFinding => ({
      what,
      target: targetWords(target),
      points,
      words,
    });
    const variable = variableOf(meaning);
    if (variable === null) return [finding("missing", missingWords(target, meaning))];
    const { rule, clock } = this.#parts;
    const unit = unitWords(facts, variable, units);
    const date = dateWords(facts, rule, clock.now().epochMilliseconds);
    const found: TargetFinding[] = [];
    if (meaning?.kind === "several") found.push(finding("ambiguous", ambiguousWords(meaning)));
    if (unit !== null) found.push(finding("unit", unit));
    if (date !== null) found.push(finding("date", date));
    if (variable.isVersioned && facts.untagged > 0 && !rule.idempotency)
      found.push(
        finding("version", `${facts.untagged} readings have no version, and variable ${variable.id} keeps versions`),
      );
    return found;
  }

  /** The list of the service has precedence; a service that does not expose one has the list of the specification. */
  async #unitsById(signal: AbortSignal): Promise<ReadonlyMap<number, ListedUnit>> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#units !== null && nowMs < this.#units.untilMs) return this.#units.byId;
    let listed: readonly ListedUnit[];
    try {
      listed = await this.#parts.client.getUnits(signal);
    } catch (thrown) {
      if (!(thrown instanceof RejectedError)) throw thrown;
      listed = UNITS;
    }
    const byId = new Map(listed.map((unit) => [unit.id, unit]));
    this.#units = { byId, untilMs: nowMs + UNITS_MS };
    return byId;
  }
}

function missingWords(target: PushTarget, meaning: Meaning | undefined): string {
  const kind = identifierKind(target);
  if (kind === null) return "it names no variable completely";
  if (kind === "variableId") return `there is no variable ${target.variableId} in the account`;
  const { sourceIds = [], others = [] } = meaning?.kind === "none" ? meaning : {};
  if (sourceIds.length === 0) return `there is no source with ${kind} ${target[kind]} in the account`;
  const selector =
    target.mappingConfig === undefined
      ? `variableTypeId ${target.variableTypeId}`
      : `mappingConfig ${target.mappingConfig}`;
  const has = others.length === 0 ? "" : `; it has ${others.join(", ")}`;
  return `source ${sourceIds.slice(0, SHOWN).join(", ")} has no variable with ${selector}${has}`;
}

function ambiguousWords({ variable, among }: Extract<Meaning, { kind: "several" }>): string {
  const more = among.length > SHOWN ? ` and ${among.length - SHOWN} more` : "";
  return `variables ${among.slice(0, SHOWN).join(", ")}${more} all match; the service takes the first, ${variable.id}`;
}

/** Null when the units agree or the mapper declared none. */
function unitWords(
  { unit: declared }: TargetFacts,
  { id, unitId }: MatchedVariable,
  units: ReadonlyMap<number, ListedUnit>,
): string | null {
  if (declared === undefined || unitId === null) return null;
  const unit = units.get(unitId);
  if (unit === undefined)
    return `declared in ${declared}; variable ${id} has the unit ${unitId}, which the service does not list`;
  if (namesUnit(declared, unit)) return null;
  return `declared in ${declared}, but variable ${id} stores ${unit.symbol ?? unit.name} (${unit.name})`;
}

function dateWords({ fromMs, toMs }: TargetFacts, { futureMs, pastMs }: GuardRule, nowMs: number): string | null {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  if (toMs > nowMs + futureMs) return `dates up to ${day(toMs)}; the limit is ${day(nowMs + futureMs)}`;
  if (pastMs !== undefined && fromMs < nowMs - pastMs)
    return `dates from ${day(fromMs)}; the limit is ${day(nowMs - pastMs)}`;
  return null;
}
