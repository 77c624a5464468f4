/**
 * The guard's step: before the first push of a run its targets are checked (`mapped → held`, or on to delivery), and a
 * held run is checked again until nothing holds it (`held → mapped`).
 */
import { isDeepStrictEqual } from "node:util";
import type { ErrorCode } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import type { GuardAct, GuardPolicy } from "../../delivery/delivery.ts";
import type { Batch, Binding, MapperIdentity, Reason, Run, RunState, TargetFacts, TargetFinding } from "../../model.ts";
import type { ReplayOverrides } from "../replay-mapper.ts";
import { hasInput } from "./exclusions.ts";
import { overtakenWords } from "./later-deliveries.ts";
import { type RebuildFault, rebuildSegment } from "./segment-rebuild.ts";
import { mapperText, NEXT, REST, type RunSteps, type StepResult, waitFor } from "./steps.ts";

/** In the order in which they are reported. */
const KINDS: Readonly<
  Record<
    What,
    {
      readonly policy: keyof GuardPolicy;
      readonly code: ErrorCode;
      /** Of one target, and of several. */
      readonly words: readonly [string, string];
    }
  >
> = {
  missing: { policy: "targets", code: "HG-GUARD-001", words: ["target is missing", "targets are missing"] },
  ambiguous: {
    policy: "targets",
    code: "HG-GUARD-001",
    words: ["target means several variables", "targets mean several variables"],
  },
  unit: {
    policy: "units",
    code: "HG-GUARD-002",
    words: ["target is of another unit", "targets are of another unit"],
  },
  date: {
    policy: "dates",
    code: "HG-GUARD-003",
    words: ["target has dates beyond the limits", "targets have dates beyond the limits"],
  },
  version: {
    policy: "versions",
    code: "HG-GUARD-004",
    words: ["target would get a second version", "targets would get a second version"],
  },
};
const WHATS = Object.keys(KINDS) as What[];

/** Findings that a reason names. */
const NAMED_MAX = 100;

/** Targets that are checked at once; memory holds the facts of so many. */
const TARGETS_PER_PART = 10_000;
const SERVICE_MISSING_WAIT_MS = 60_000;
const REBUILT_WAIT_MS = 1_000;

/** `go`: nothing keeps it back. */
type Verdict =
  | { readonly verdict: "go"; readonly warning: string | null }
  | { readonly verdict: "hold"; readonly reason: Reason }
  | { readonly verdict: "wait"; readonly step: StepResult }
  /** Its segment is lost, and cannot be made again. */
  | { readonly verdict: "lost"; readonly fault: RebuildFault };

type Provisioning = NonNullable<ReturnType<RunSteps["provisioning"]>>;

/** Whether there is anything that the guard checks. A run that continues a held one may have been overtaken as well. */
export function isGuarded(run: Run, steps: RunSteps): boolean {
  return run.replay?.continues !== undefined || Object.values(steps.guardPolicy(run)).some((act) => act !== "push");
}

/** Before a mapped run is delivered: null when it may go. */
export async function guardRun(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult | null> {
  const found = await verdictOf(run, steps, signal);
  if (found.verdict === "wait") return found.step;
  if (found.verdict === "lost") return await quarantineUnmade(run, run.state, found.fault, steps);
  if (found.verdict === "hold") return await hold(run, found.reason, steps);
  if (run.replay?.continues !== undefined) {
    const passed = await passedBy(run, waitFor(REBUILT_WAIT_MS, "its payload was made again"), steps, signal);
    if ("step" in passed) return passed.step;
    if ("reason" in passed) return await hold(run, passed.reason, steps);
  }
  if (found.warning !== null) await steps.ledger.noteRun(run.id, { event: "run.warned", detail: found.warning });
  return null;
}

async function hold(run: Run, reason: Reason, steps: RunSteps): Promise<StepResult> {
  await steps.ledger.advanceRun(run.id, "mapped", "held", { reason, detail: reason.message });
  return { move: "rest", held: true };
}

/** Of a held run. */
export async function recheckHeld(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const again = waitFor(pauseMs(run, steps), run.reason?.message ?? "it is held");
  const changed = await changedBinding(run, steps);
  if (changed !== null && (await mayContinue(run, steps))) return await continueHeld(run, changed, steps);
  // Only a person can say which of the values is right.
  if (run.reason?.code === "HG-GUARD-007") return again;
  if (!(await steps.spool.hasSegment(run.id))) {
    const { fault } = await rebuild(run, steps, signal);
    return fault === null ? NEXT : await quarantineUnmade(run, run.state, fault, steps);
  }
  const found = await verdictOf(run, steps, signal);
  if (found.verdict === "wait") return found.step;
  if (found.verdict === "lost") return await quarantineUnmade(run, run.state, found.fault, steps);
  if (found.verdict === "hold") {
    const message = changed === null ? found.reason.message : `${found.reason.message}; ${changed.words}`;
    return await stay(run, { ...found.reason, message }, again, steps);
  }
  if (changed !== null) return await stay(run, askedReason(changed), again, steps);
  const passed = await passedBy(run, again, steps, signal);
  if ("step" in passed) return passed.step;
  if ("reason" in passed) return await stay(run, passed.reason, again, steps);
  const words = `nothing holds it now: ${run.reason?.message ?? ""}`;
  // Null: another run passed it meanwhile, which is checked next.
  await steps.ledger.resumeHeld(run.id, "mapped", passed.seen, words);
  return NEXT;
}

type Passed =
  /** By none, or by these, which share no date. */
  { readonly seen: readonly string[] } | { readonly step: StepResult } | { readonly reason: Reason };

/** Later runs that delivered dates of the run. `again`: when its payload had to be made again to know. */
async function passedBy(run: Run, again: StepResult, steps: RunSteps, signal: AbortSignal): Promise<Passed> {
  const overtaken = await overtakenWords(run, steps);
  if (overtaken.status === "free") return { seen: overtaken.seen };
  if (overtaken.status === "wait") return { step: overtaken.step };
  if (overtaken.isDamaged === true) {
    const { fault } = await rebuild(run, steps, signal);
    return { step: fault === null ? again : await quarantineUnmade(run, run.state, fault, steps) };
  }
  const code = "HG-GUARD-007";
  return { reason: { code, message: overtaken.words, hint: REGISTER[code].hint } };
}

async function stay(run: Run, reason: Reason, again: StepResult, steps: RunSteps): Promise<StepResult> {
  if (run.reason?.message !== reason.message)
    await steps.ledger.noteRun(run.id, { reason, event: "run.held", detail: reason.message });
  return again;
}

/** A third of the time that it has been held. */
function pauseMs(run: Run, { clock, recheck }: RunSteps): number {
  const heldMs = clock.now().epochMilliseconds - Date.parse(run.changedAt);
  return Math.min(recheck.lastMs, Math.max(recheck.firstMs, heldMs / 3));
}

async function verdictOf(run: Run, steps: RunSteps, signal: AbortSignal): Promise<Verdict> {
  const policy = steps.guardPolicy(run);
  if (Object.values(policy).every((act) => act === "push")) return { verdict: "go", warning: null };
  return await inspect(run, policy, steps, signal);
}

async function inspect(
  run: Run,
  policy: GuardPolicy,
  steps: RunSteps,
  signal: AbortSignal,
  mayProvision = true,
): Promise<Verdict> {
  const post = steps.serviceEntry(run.binding.service);
  if (post === undefined)
    return {
      verdict: "wait",
      step: waitFor(SERVICE_MISSING_WAIT_MS, `the service ${run.binding.service} is no longer in the configuration`),
    };
  const provisioning = mayProvision ? steps.provisioning(run) : null;
  const findings = new GuardFindings(policy, provisioning?.max ?? 0);
  let instead: Verdict | null = null;
  const take = async (part: readonly TargetFacts[]) => {
    if (instead !== null) return;
    const seen = await post.delivery.inspect(part, signal);
    if (seen.status === "seen") findings.add(seen.findings, seen.missing);
    else if (seen.status === "unreadable") instead = unreadable(seen.reason, policy);
    else instead = await unknown(run, seen, steps);
  };
  if (!(await steps.spool.facts(run.id, TARGETS_PER_PART, take))) {
    const { fault } = await rebuild(run, steps, signal);
    return fault === null ? { verdict: "wait", step: NEXT } : { verdict: "lost", fault };
  }
  if (instead !== null) return instead;
  if (provisioning !== null && findings.count("missing") > 0) {
    const fault = await provision(run, findings, provisioning, steps, signal);
    if (fault === null) return await inspect(run, policy, steps, signal, false);
    return { verdict: "hold", reason: withFault(findings.holding(), fault) };
  }
  const reason = findings.holding();
  return reason === null ? { verdict: "go", warning: findings.warning() } : { verdict: "hold", reason };
}

/** Null when the missing targets were created; otherwise why not. */
async function provision(
  run: Run,
  findings: GuardFindings,
  { max, provision: create }: Provisioning,
  { ledger, serviceEntry }: RunSteps,
  signal: AbortSignal,
): Promise<string | null> {
  if (findings.missing === undefined) return `more targets are missing than \`provision.max\` (${max}) creates`;
  const { created, fault, error } = await create(findings.missing, signal);
  // Also when another node has created it meanwhile.
  serviceEntry(run.binding.service)?.delivery.forgetStructure();
  if (created !== null) await ledger.noteRun(run.id, { event: "structure.created", detail: created });
  if (error !== null) throw error;
  return fault;
}

function withFault(held: Reason | null, fault: string): Reason {
  const code = "HG-GUARD-008";
  const message = held === null ? fault : `${fault}; ${held.message}`;
  return { ...held, code, message, hint: REGISTER[code].hint };
}

/** A power cut may leave a damaged target index: the file is mapped again, into the same bytes. */
async function rebuild(
  run: Run,
  steps: RunSteps,
  signal: AbortSignal,
): Promise<{ readonly fault: RebuildFault | null }> {
  const fault = await rebuildSegment(run, await steps.ledger.batches(run.id), steps, signal);
  if (fault === null)
    await steps.ledger.noteRun(run.id, { event: "run.rebuilt", detail: "to know what its batches hold" });
  return { fault };
}

function unreadable(why: string, { unreadable: act }: GuardPolicy): Verdict {
  const code = "HG-GUARD-005";
  if (act === "hold") return { verdict: "hold", reason: { code, message: why, hint: REGISTER[code].hint } };
  return { verdict: "go", warning: act === "warn" ? `pushed unchecked: ${why} [${code}]` : null };
}

async function unknown(
  run: Run,
  { reason, code, retryAfterMs }: { reason: string; code: string; retryAfterMs: number },
  { ledger }: RunSteps,
): Promise<Verdict> {
  if (run.state === "mapped" && run.reason?.message !== reason)
    await ledger.noteRun(run.id, { reason: { code, message: reason }, event: "run.waiting", detail: reason });
  return { verdict: "wait", step: { move: "wait", ms: retryAfterMs, reason, failing: true } };
}

// A held run whose mapper, settings or tables were changed since it was mapped: the file continues as a new run, which
// is bound to what is in force and has the place of the held one in its lane (invariants 7 and 10). With `held.remap:
// ask` it stays held, and says so, until a person replays it (with what is in force) or releases it (as it is).

type Bound = Awaited<ReturnType<RunSteps["bindingNow"]>>;

/** The binding in force, and in words how it differs from the one that the run was mapped with. */
interface ChangedBinding {
  readonly now: Bound;
  readonly words: string;
}

/** Null when nothing differs, and for what cannot be mapped again. */
async function changedBinding(run: Run, steps: RunSteps): Promise<ChangedBinding | null> {
  const { binding } = run;
  if (binding.structure === true || binding.unpack !== undefined) return null;
  const now = await steps.bindingNow(run, chosenBy(run));
  // A mapper that is missing or does not load changes nothing: what was mapped stays.
  const mapper = await steps.currentMapper(now.binding.mapper.name);
  if (mapper === null) return null;
  const words = differences(binding, now.binding, mapper);
  if (words.length === 0) return null;
  return { now: { ...now, binding: { ...now.binding, mapper } }, words: words.join("; ") };
}

/** The choice of a person who ordered a replay, which no trigger overrides; its mapper may have another version. */
function chosenBy({ replay, binding }: Run): ReplayOverrides {
  if (replay === null || replay.continues === "claim") return {};
  return { mapper: binding.mapper.name, settings: binding.settings, rows: binding.rows };
}

function differences(was: Binding, now: Binding, mapper: MapperIdentity): readonly string[] {
  const { mapper: own } = was;
  const words: string[] = [];
  if (own.name !== mapper.name || own.digest !== mapper.digest)
    words.push(`it was mapped by ${mapperText(own)}, and in force is ${mapperText(mapper)}`);
  const keys = changedKeys(was.settings, now.settings);
  if (keys.length > 0) words.push(`other settings are in force (${keys.join(", ")})`);
  const rules = (["rows", "rejectShare", "version"] as const).filter((key) => !isSame(was[key], now[key]));
  for (const rule of rules) words.push(`the trigger has \`${rule}\` ${JSON.stringify(now[rule]) ?? "left out"} now`);
  for (const { name, digest } of was.lookups ?? []) {
    const there = now.lookups?.find((table) => table.name === name);
    // A table that cannot be read now may come back unchanged.
    if (there !== undefined && there.digest !== null && there.digest !== digest)
      words.push(`the table ${name} was changed`);
  }
  return words;
}

function changedKeys(was: Binding["settings"], now: Binding["settings"]): readonly string[] {
  const keys = new Set([...Object.keys(was), ...Object.keys(now)]);
  return [...keys].filter((key) => !isSame(was[key], now[key])).sort();
}

/** A binding of the ledger was JSON. */
function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/**
 * Whether the gateway continues it by itself: not where a part of it was accepted, which other values would not take
 * back, nor where there is nothing left to map.
 */
async function mayContinue(run: Run, steps: RunSteps): Promise<boolean> {
  return steps.remapHeld === "always" && run.points.accepted === 0 && (await hasInput(run, steps));
}

async function continueHeld(run: Run, { now, words }: ChangedBinding, steps: RunSteps): Promise<StepResult> {
  const why = run.reason === null ? words : `${words}; it was held: ${run.reason.message}`;
  const { run: next } = await steps.ledger.replaceHeld(
    run.id,
    { code: "HG-RUN-010", message: words },
    {
      ...now,
      replay: {
        ...{ of: run.id, rejectedOnly: false, overwrite: true, by: "Headgate", why },
        continues: run.replay === null ? "claim" : (run.replay.continues ?? "replay"),
      },
    },
  );
  steps.log.info(
    { run: run.id, next: next.id, drop: run.drop, file: run.path },
    `${run.path} is mapped again: ${words}`,
  );
  steps.onRun();
  return NEXT;
}

/** Why a run stays held that nothing else holds. */
function askedReason({ words }: ChangedBinding) {
  const code = "HG-GUARD-010";
  return { code, message: words, hint: REGISTER[code].hint };
}

type What = TargetFinding["what"];

/** Findings of the guard in the parts of one run, counted; the first of each kind is named. */
class GuardFindings {
  readonly #policy: GuardPolicy;
  readonly #counts = new Map<What, number>();
  readonly #first = new Map<What, TargetFinding>();
  /** Of those that hold the run. */
  readonly #named: TargetFinding[] = [];
  /** Targets that are missing, so that they can be created; undefined when there are more than are asked for. */
  missing: TargetFacts[] | undefined = [];
  readonly #missingMax: number;
  /** Readings of missing targets, whatever the policy says of these. */
  #discards = 0;

  constructor(policy: GuardPolicy, missingMax: number) {
    this.#policy = policy;
    this.#missingMax = missingMax;
  }

  add(findings: readonly TargetFinding[], missing: readonly TargetFacts[]): void {
    for (const finding of findings) {
      const { what } = finding;
      if (what === "missing") this.#discards += finding.points;
      this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
      if (!this.#first.has(what)) this.#first.set(what, finding);
      if (this.#act(what) === "hold" && this.#named.length < NAMED_MAX) this.#named.push(finding);
    }
    this.missing?.push(...missing.slice(0, this.#missingMax + 1));
    if ((this.missing?.length ?? 0) > this.#missingMax) this.missing = undefined;
  }

  count(what: What): number {
    return this.#counts.get(what) ?? 0;
  }

  /** Why the run is held, or null. */
  holding(): Reason | null {
    const [first, ...others] = this.#kinds("hold");
    if (first === undefined) return null;
    const { code } = KINDS[first];
    const message = [first, ...others].map((what) => this.#words(what)).join("; ");
    const discards = this.#discards === 0 ? {} : { discards: this.#discards };
    return { code, message, hint: REGISTER[code].hint, targets: this.#named, ...discards };
  }

  /** Findings that are only reported, or null. */
  warning(): string | null {
    const kinds = this.#kinds("warn");
    return kinds.length === 0 ? null : kinds.map((what) => `${this.#words(what)} [${KINDS[what].code}]`).join("; ");
  }

  #kinds(act: GuardAct): readonly What[] {
    return WHATS.filter((what) => this.#counts.has(what) && this.#act(what) === act);
  }

  #act(what: What): GuardAct {
    return this.#policy[KINDS[what].policy];
  }

  /** `2 targets are missing: sourceEan=1 mappingConfig=a (there is no source …) and 1 more` */
  #words(what: What): string {
    const count = this.#counts.get(what) ?? 0;
    const first = this.#first.get(what);
    const more = count > 1 ? ` and ${count - 1} more` : "";
    return `${count} ${KINDS[what].words[count === 1 ? 0 : 1]}: ${first?.target} (${first?.words})${more}`;
  }
}

/** Ends a run with batches whose segment can never be made again, and reports the batches that were accepted. */
export async function quarantineUnmade(
  run: Run,
  from: RunState,
  { code, message }: RebuildFault,
  { ledger }: RunSteps,
): Promise<StepResult> {
  const words = `${message}; ${sentWords(await ledger.batches(run.id))}`;
  const hint = code === "HG-RUN-014" ? REGISTER[code].hint : undefined;
  await ledger.advanceRun(run.id, from, "quarantined", {
    reason: { code, message: words, ...(hint === undefined ? {} : { hint }) },
    detail: words,
  });
  return REST;
}

/** `1 of its 3 batches were accepted before (200 readings), and 1 was sent without an answer` */
function sentWords(batches: readonly Batch[]): string {
  const leaves = batches.filter(({ state }) => state !== "split");
  const accepted = leaves.filter(({ state }) => state === "accepted");
  const unanswered = leaves.filter(({ state, attempts }) => state === "sending" && attempts > 0);
  const readings = accepted.reduce((sum, { points }) => sum + points, 0);
  const said =
    accepted.length === 0
      ? `none of its ${leaves.length} batches was accepted before`
      : `${accepted.length} of its ${leaves.length} batches were accepted before (${readings} readings) and stay so`;
  return unanswered.length === 0 ? said : `${said}; ${unanswered.length} were sent without an answer`;
}
