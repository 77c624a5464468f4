/**
 * Matches settled arrivals with the triggers: each becomes a run with its binding, or is unmatched, with the
 * reason.
 */

import { posix } from "node:path";
import { basename } from "node:path/posix";
import { wordsOf } from "#core/errors.ts";
import { hasEscapes, isContainerName, unusableName } from "#core/file-names.ts";
import { REGISTER } from "#core/register.ts";
import type { Turn } from "#core/turns.ts";
import { finishFile, type Provenance, setFileAside } from "../drops/drop.ts";
import type { Ledger, RunOpening } from "../ledger/ledger.ts";
import type { Arrival, Binding, FinishPlan } from "../model.ts";
import { ClaimBindings, standardClaim } from "./claim-bindings.ts";
import type { ClaimParts, TriggerMatch, Unpacking } from "./claim-parts.ts";
import { asideEvent, beginWatch } from "./finish-watch.ts";
import type { DropEntry } from "./steps/steps.ts";

/** Milliseconds for the finish of one file. */
const FINISH_MS = 60_000;

/** Names of files in one line of the log. */
const NAMED_MAX = 20;
/** Files whose line was written in this process, so that one that changes now and then has one line. */
const LOGGED_MAX = 100_000;

const NO_WARNINGS: ReadonlyMap<number, string> = new Map();
/** Claims that share a commit, those that open runs as one list. */
const RECORDED_AT_ONCE = 250;

/**
 * Callback of pick-up: afterwards each arrival is `matched` or `unmatched`. Several drops may claim at once:
 * their claims are prepared side by side, and runs are opened in the order of the calls (invariant 7). Throws
 * the first error, after all claims have ended: files behind one that failed, of its lanes, wait for the next call.
 */
export async function claimArrivals(
  arrivals: readonly Arrival[],
  parts: ClaimParts,
  warnings: ReadonlyMap<number, string> = NO_WARNINGS,
): Promise<void> {
  const turn = parts.turns.enter();
  const faults: unknown[] = [];
  const noteFault = (thrown: unknown) => void faults.push(thrown);
  try {
    const bindings = new ClaimBindings(parts);
    const prepared: PreparedClaim[] = [];
    const unprepared = new Set<string>();
    for (const arrival of arrivals) {
      const claim = await prepareClaim(arrival, bindings, parts, warnings.get(arrival.id)).catch(noteFault);
      if (claim === undefined) hold(lanesBehind(arrival, parts), unprepared);
      else if (isFree(claim, unprepared)) prepared.push(claim);
    }
    await turn.mine;
    const recorded = await recordAll(prepared, parts.ledger, noteFault, turn);
    logUnmatched(
      recorded.flatMap((claim) => (claim.unmatched === undefined ? [] : [claim.unmatched])),
      parts,
    );
    if (recorded.some(({ opening }) => opening !== null)) parts.onRun();
    // A file is changed only after the ledger recorded its claim.
    for (const { after } of recorded) await after?.().catch(noteFault);
  } finally {
    turn.pass();
  }
  if (faults.length > 0) throw faults[0];
}

/** Returns the claims that the ledger has now. The turn is passed when the last of them were sent. */
async function recordAll(
  prepared: readonly PreparedClaim[],
  ledger: Ledger,
  noteFault: (thrown: unknown) => void,
  turn: Turn,
): Promise<readonly PreparedClaim[]> {
  const recorded: PreparedClaim[] = [];
  const unopened = new Set<string>();
  const noteUnopened = ({ lanes }: RunOpening) => hold(lanes, unopened);
  for (let begin = 0; begin < prepared.length; begin += RECORDED_AT_ONCE) {
    const end = begin + RECORDED_AT_ONCE;
    const due = prepared.slice(begin, end).filter((claim) => isFree(claim, unopened));
    const opening = openAll(due.filter(opensRun), ledger, { recorded, noteFault, noteUnopened });
    const leaving = due.map(async (claim) => {
      if (claim.opening !== null) return;
      const left = (needsPerson: boolean) =>
        recorded.push({ ...claim, unmatched: needsPerson ? claim.arrival : undefined });
      await claim.leave().then(left, noteFault);
    });
    if (end >= prepared.length) turn.pass();
    await Promise.all([opening, ...leaving]);
  }
  return recorded;
}

/** As one list, whose order is that of the runs. */
async function openAll(
  claims: readonly OpeningClaim[],
  ledger: Ledger,
  found: {
    readonly recorded: PreparedClaim[];
    readonly noteFault: (thrown: unknown) => void;
    readonly noteUnopened: (opening: RunOpening) => void;
  },
): Promise<void> {
  if (claims.length === 0) return;
  try {
    const opened = await ledger.openRuns(claims.map(({ opening }) => opening));
    for (const [at, claim] of claims.entries()) {
      const result = opened[at];
      if (result?.run) {
        found.recorded.push(claim);
        continue;
      }
      found.noteUnopened(claim.opening);
      if (result?.why === "fault") found.noteFault(result.thrown);
    }
  } catch (thrown) {
    found.noteFault(thrown);
    for (const { opening } of claims) found.noteUnopened(opening);
  }
}

function opensRun(claim: PreparedClaim): claim is OpeningClaim {
  return claim.opening !== null;
}

function isFree({ opening }: PreparedClaim, held: ReadonlySet<string>): boolean {
  return held.size === 0 || opening === null || !opening.lanes.some((lane) => held.has(lane));
}

function hold(lanes: readonly string[], held: Set<string>): void {
  for (const lane of lanes) held.add(lane);
}

/** The callbacks of pick-up. */
export function claimsBy(parts: ClaimParts) {
  return {
    claim: (arrivals: readonly Arrival[], warnings?: ReadonlyMap<number, string>) =>
      claimArrivals(arrivals, parts, warnings),
    lanesOf: (drop: string, path: string) => lanesOfFile({ drop, path }, parts),
  };
}

/**
 * The lanes of a file at this path of a drop; of a container, all that its entries may have. None when no
 * trigger claims it.
 */
function lanesOfFile(file: Pick<Arrival, "drop" | "path">, parts: ClaimParts): readonly string[] {
  const unpacks = parts.unpacking(file.drop)?.unpack === true;
  if (unpacks && isContainerName(basename(file.path))) return parts.lanesOf(file.drop, parts.defaultService);
  const { claimed } = parts.match(file, null);
  if (claimed === null) return [];
  return [parts.laneOf(claimed, file.drop, claimed.service ?? parts.defaultService)];
}

/** Of a file whose claim failed; none where the same fault keeps them unknown. */
function lanesBehind(arrival: Arrival, parts: ClaimParts): readonly string[] {
  try {
    return lanesOfFile(arrival, parts);
  } catch {
    return [];
  }
}

/** A claim that is not recorded yet. It opens a run, or records that the arrival is unmatched. */
type PreparedClaim = OpeningClaim | LeavingClaim;

interface OpeningClaim {
  readonly opening: RunOpening;
  readonly after?: undefined;
  readonly unmatched?: undefined;
}

interface LeavingClaim {
  readonly opening: null;
  readonly arrival: Arrival;
  /** Whether a person has to see to the file, which was not so before. */
  leave(): Promise<boolean>;
  after?(): Promise<void>;
  /** The file that a person has to see to, once it is recorded. */
  readonly unmatched?: Arrival | undefined;
}

async function prepareClaim(
  arrival: Arrival,
  bindings: ClaimBindings,
  parts: ClaimParts,
  warning: string | undefined,
): Promise<PreparedClaim> {
  if (warning !== undefined) parts.log.warn({ drop: arrival.drop, file: arrival.path }, `${arrival.path}: ${warning}`);
  if (arrival.parentId === null && hasEscapes(arrival.path)) return { opening: refusedName(arrival, parts) };
  const { outermost, depth } = await placeOf(arrival, parts.ledger);
  const provenance = await parts.provenance(outermost);
  const unpacking = parts.unpacking(arrival.drop);
  if (unpacking?.unpack === true && provenance?.standardBody === undefined && isContainerName(basename(arrival.path)))
    return { opening: openedContainer(arrival, { depth, unpacking, provenance, warning }, parts) };
  const match: TriggerMatch =
    provenance?.standardBody === undefined
      ? parts.match(arrival, provenance)
      : { claimed: standardClaim(provenance.standardBody), others: [], why: "" };
  const { claimed, others } = match;
  if (claimed === null) return unclaimed(arrival, match, parts);
  const paused = provenance?.standardBody === undefined ? parts.pausedTrigger(claimed.name) : null;
  // The file stays at its drop, without the rule for unmatched files, and is offered again when the trigger
  // is resumed.
  if (paused !== null) return { opening: null, arrival, leave: () => leaveUnmatched(arrival, paused, true, parts) };
  if (others.length > 0) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, trigger: claimed.name, others },
      "several triggers match; the first takes it",
    );
  }
  const { binding, fault } = await bindings.of(claimed, arrival.drop, provenance);
  const lane = parts.laneOf(claimed, arrival.drop, binding.service);
  const start = {
    ...(fault === null ? {} : { refusal: fault }),
    ...(warning === undefined ? {} : { warning }),
  };
  return { opening: { arrivalId: arrival.id, binding, lane, lanes: [lane], ...start } };
}

function unclaimed(arrival: Arrival, { why, undecided }: TriggerMatch, parts: ClaimParts): LeavingClaim {
  const expected = expectedWords(arrival, parts);
  const reason = expected === null || expected === "" ? why : `${expected}; ${why}`;
  const unmatched = { ...arrival, reason };
  const leave = (isExpected: boolean) => () => leaveUnmatched(arrival, reason, isExpected, parts);
  if (undecided === true) return { opening: null, arrival: unmatched, leave: leave(true) };
  const after = () => finishUnmatched(arrival, parts);
  // A file that may lie at a drop is not finished.
  return expected === null || expected === ""
    ? { opening: null, arrival: unmatched, leave: leave(expected !== null), after }
    : { opening: null, arrival: unmatched, leave: leave(true) };
}

/**
 * The outermost container of an entry, by which it came, and the depth of the entry: 0 for a file at the drop
 * itself.
 */
async function placeOf(arrival: Arrival, ledger: Ledger): Promise<{ outermost: Arrival; depth: number }> {
  let outermost = arrival;
  let depth = 0;
  for (; outermost.parentId !== null; depth += 1) {
    const container = await ledger.arrival(outermost.parentId);
    if (container === null) break;
    outermost = container;
  }
  return { outermost, depth };
}

/** A refused run for a name that is not valid text, which no trigger or mapper can read as its sender meant it. */
function refusedName(arrival: Arrival, parts: ClaimParts): RunOpening {
  const binding: Binding = {
    trigger: "(file name)",
    service: parts.defaultService,
    mapper: { name: "(none)", version: "", digest: "" },
    settings: {},
    rows: "strict",
    limits: parts.limits,
  };
  const refusal = { code: "HG-DROP-022", ...unusableName(arrival.path) };
  return { arrivalId: arrival.id, binding, lane: `file names of ${arrival.drop}`, lanes: [], refusal };
}

/**
 * Triggers are asked for the entries of a container, not for itself. The containers of one drop are opened
 * one after another.
 */
function openedContainer(
  arrival: Arrival,
  place: {
    readonly depth: number;
    readonly unpacking: Unpacking;
    readonly provenance: Provenance | null;
    readonly warning: string | undefined;
  },
  parts: ClaimParts,
): RunOpening {
  const { unpack: _unpack, depthMax, ...limits } = place.unpacking;
  const rule = depthMax === 1 ? "only the outermost one is" : `none deeper than ${depthMax} is`;
  const message = `the container is not opened: it is within another, and ${rule}`;
  const lanes = parts.lanesOf(arrival.drop, place.provenance?.service ?? parts.defaultService);
  const binding: Binding = {
    trigger: "(container)",
    service: parts.defaultService,
    mapper: { name: "(unpack)", version: "1", digest: "" },
    settings: {},
    rows: "strict",
    limits: parts.limits,
    unpack: limits,
  };
  return {
    ...{ arrivalId: arrival.id, binding, lane: `containers of ${arrival.drop}`, lanes },
    ...(place.depth < depthMax
      ? { ...(place.warning === undefined ? {} : { warning: place.warning }), feeds: lanes }
      : { refusal: { code: "HG-PACK-005", message } }),
  };
}

// Files that no trigger claims: the ledger records them, and the rule of their drop finishes them.

/** `isExpected`: as in the `Arrival`. Returns whether a person has to see to the file, which was not so before. */
async function leaveUnmatched(arrival: Arrival, why: string, isExpected: boolean, parts: ClaimParts): Promise<boolean> {
  const { state, reason, isExpected: wasExpected = false } = arrival;
  if (state !== "unmatched" || reason !== why || wasExpected !== isExpected)
    await parts.ledger.advanceArrival(arrival.id, "unmatched", why, isExpected);
  return !isExpected && (state !== "unmatched" || wasExpected);
}

/** Why no person has to see to a file that no trigger claims, in words; null when one has to. */
function expectedWords({ drop, path }: Arrival, { dropEntry }: Pick<ClaimParts, "dropEntry">): string | null {
  const patterns = dropEntry(drop)?.expectUnmatched ?? [];
  // A hub stores what accounts send, and shows them what becomes of it.
  if (patterns === "all") return "";
  const composed = path.normalize("NFC");
  const names = path.includes("!/") ? [composed, composed.slice(composed.lastIndexOf("!/") + 2)] : [composed];
  const found = patterns.find((pattern) => names.some((name) => posix.matchesGlob(name, pattern.normalize("NFC"))));
  return found === undefined ? null : `it is expected here (\`expectUnmatched\` of the drop: ${found})`;
}

/** One line for the files of one call, each file once. */
function logUnmatched(arrivals: readonly Arrival[], { log, loggedUnmatched: logged }: ClaimParts): void {
  const others = arrivals.filter(({ id }) => !logged.has(id));
  if (logged.size + others.length > LOGGED_MAX) logged.clear();
  for (const { id } of others) logged.add(id);
  for (const [drop, files] of Map.groupBy(others, (arrival) => arrival.drop)) {
    const names = files.slice(0, NAMED_MAX).map(({ path }) => path);
    const more = files.length > names.length ? `, and ${files.length - names.length} more` : "";
    const what = files.length === 1 ? "this file" : `these ${files.length} files`;
    const facts = {
      drop,
      files: names,
      count: files.length,
      reason: files[0]?.reason,
      hint: REGISTER["HG-TRIG-001"].hint,
    };
    log.warn({ code: "HG-TRIG-001", ...facts }, `no trigger claims ${what} at ${drop}: ${names.join(", ")}${more}`);
  }
}

/**
 * Applies the drop's rule for unmatched files. A failure is tried again when the triggers are asked again.
 */
async function finishUnmatched(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const entry = parts.dropEntry(arrival.drop);
  if (entry === undefined || arrival.parentId !== null || entry.finish.unmatched.action === "leave") return;
  const subject = { drop: arrival.drop, path: arrival.path, runId: null };
  const plan = parts.planFinish(entry.finish.unmatched, arrival, `unmatched-${arrival.id}`);
  // One after another, so that the drop has time for other calls.
  const turn = parts.finishing.enter();
  try {
    await turn.mine;
    await parts.ledger.fleet.assertDrop(arrival.drop);
    const signal = AbortSignal.timeout(FINISH_MS);
    if (entry.guardMs > 0) {
      await setAsideUnmatched(arrival, plan, entry, parts, signal);
      parts.finishFaults.note(subject, null);
      return;
    }
    const result = await finishFile(entry.drop, arrival, plan, signal);
    parts.finishFaults.note(subject, null);
    const what = result === "done" ? (plan.action === "archive" ? "archived" : "deleted") : result;
    const detail = plan.action === "archive" && result === "done" ? `${arrival.path} → ${plan.to}` : arrival.path;
    await addSourceEvent(arrival, `source.${what}`, detail, parts);
  } catch (thrown) {
    parts.finishFaults.note(subject, thrown);
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, reason: wordsOf(thrown) },
      "an unmatched file could not be finished",
    );
  } finally {
    turn.pass();
  }
}

async function setAsideUnmatched(
  arrival: Arrival,
  plan: FinishPlan,
  { drop, guardMs }: DropEntry,
  parts: ClaimParts,
  signal: AbortSignal,
): Promise<void> {
  const before = await parts.ledger.finishedFiles.of(arrival.id);
  // The time of the guard is not extended when the triggers are asked again.
  if (before !== null && before.size === arrival.size && before.mtime === arrival.mtime) return;
  const aside = await setFileAside(drop, { entry: arrival, plan }, signal);
  if (aside.result !== "done" && aside.result !== "waits")
    return await addSourceEvent(arrival, `source.${aside.result}`, arrival.path, parts);
  const watched = beginWatch(aside, guardMs, parts.clock);
  const event =
    aside.result === "done"
      ? asideEvent(arrival.path, aside, watched.endsAt)
      : { what: "source.waits", detail: `${arrival.path} stays for now: ${aside.why}` };
  const { drop: name, path, size, mtime } = arrival;
  const file = { ...watched, drop: name, path, size, mtime, arrivalId: arrival.id };
  await parts.ledger.finishedFiles.watch(file, event);
}

function addSourceEvent({ id }: Arrival, what: string, detail: string, { ledger }: ClaimParts): Promise<void> {
  return ledger.addEvent({ arrivalId: id, runId: null, operationId: null, what, detail });
}
