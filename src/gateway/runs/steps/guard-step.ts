/**
 * The guard's step: before the first push of a run its targets are checked (`mapped → held`, or on to delivery), and a
 * held run is checked again until nothing holds it (`held → mapped`).
 */

import { REGISTER } from "#core/register.ts";
import type { GuardPolicy } from "../../delivery/delivery.ts";
import type { Reason, Run, TargetFacts } from "../../model.ts";
import { GuardFindings } from "./guard-findings.ts";
import { askedReason, changedBinding, continueHeld, mayContinue } from "./held-remap.ts";
import { overtakenWords } from "./later-deliveries.ts";
import { quarantineUnmade } from "./lost-segment.ts";
import { type RebuildFault, rebuildSegment } from "./segment-rebuild.ts";
import { NEXT, type RunSteps, type StepResult, waitFor } from "./steps.ts";

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
