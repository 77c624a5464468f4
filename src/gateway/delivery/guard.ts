/**
 * The guard before the first push: finds readings that the service would accept with a 200 and then store nowhere,
 * twice, or in a wrong unit (specification, *Errors*, silent failures). The guard reports; the trigger decides what
 * follows.
 */

import type { Clock } from "#core/clock.ts";
import { ConfigError, HeadgateError, RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import type { ServiceClient } from "#wire/client/index.ts";
import type { PushTarget } from "#wire/push.ts";
import { identifierKind, targetWords } from "#wire/target.ts";
import { type ListedUnit, namesUnit, UNITS } from "#wire/units.ts";
import type { TargetFacts, TargetFinding } from "../model.ts";
import type { GuardRule, Inspection } from "./delivery.ts";
import type { Backoff } from "./retry-table.ts";
import { type MatchedVariable, type Meaning, type ResolveOptions, type TargetResolver, variableOf } from "./targets.ts";

export interface GuardParts {
  readonly client: ServiceClient;
  readonly targets: TargetResolver;
  readonly clock: Clock;
  readonly rule: GuardRule;
  readonly backoff: Backoff;
}

/** Longest pause of the read interface after a failure; pushes have a pause of their own. */
const PAUSE_MAX_MS = 60_000;
/** Pause after a refusal that a person has to resolve. */
const REFUSED_MS = 30_000;
/** Without the right to read, each query may cost a token. */
const UNREADABLE_MS = 5 * 60_000;
const UNITS_MS = 60 * 60_000;
const SHOWN = 5;

export class Guard {
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
