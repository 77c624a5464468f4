/**
 * The state of the gateway as a whole: whether it is ready, whether it is idle, files that need attention, and the
 * summary at the end.
 */

import { Gauge, type Registry } from "prom-client";
import { REGISTER } from "#core/register.ts";
import type { Ledger, RestingRun, RunFilter } from "../ledger/ledger.ts";
import {
  type Arrival,
  type DropKind,
  type DropState,
  type IsoInstant,
  READINGS_LOST,
  type Run,
  type RunState,
  type Summary,
} from "../model.ts";
import { ATTENTION_STATES, RUN_STATES, runStatesThat, UNCLAIMED_STATES } from "../states.ts";
import { type Attention, type Concern, occupiedHealth, occupiedWords, waitingAsOccupied } from "./attention.ts";
import { runWords } from "./attention-log.ts";
import { type MissingFile, missingWords } from "./late-files.ts";
import { type LaneWait, laneHealth } from "./waiting-lanes.ts";

/** A drop whose files wait, as reported by the daemon or, without it, by the configuration. */
export interface WaitingPlace extends Pick<DropState, "drop" | "waiting" | "eventsArrive" | "paused"> {
  /** Milliseconds after which an unsettled file counts as overdue, where no watcher reports it. */
  readonly overdueAfterMs?: number;
}

/** One file in progress, the reason why it waits and since when. */
export interface WaitingFile {
  readonly drop: string;
  readonly path: string;
  /** State of the arrival, or of its run. */
  readonly state: string;
  readonly since: IsoInstant;
  readonly reason: string;
  readonly runId: string | null;
  /** It has not settled for longer than its drop's limit, or it blocks its lane for too long. */
  readonly overdue: boolean;
  /** As in the `DropState` of its drop. */
  readonly eventsArrive: boolean | null;
  /** Later runs wait behind it, in a lane that has waited for too long. */
  readonly holdsUp?: { readonly since: IsoInstant; readonly behind: number };
}

/** One part of the gateway and whether it works, with the reason in words. */
export interface HealthPart {
  readonly part: string;
  readonly ready: boolean;
  readonly reason: string;
}

/** A service whose clock is far from ours. */
export interface ClockFault {
  readonly service: string;
  readonly words: string;
  readonly hint: string;
}

export const UNMATCHED_CODE = "HG-TRIG-001";
export const UNMATCHED_HINT = REGISTER[UNMATCHED_CODE].hint;

/** Further files of a drop are not counted. */
const COUNTED_MAX = 100_000;
/** Files of a drop that are a concern each; the others are one. */
const CONCERNS_MAX = 1_000;
const NAMED_MAX = 3;

/** Above this number, the bytes of held runs are reported as at least so many. */
const IDS_MAX = 20_000;

export function clockHealth(faults: readonly ClockFault[]): readonly HealthPart[] {
  return faults.map(({ service, words, hint }) => ({
    ...{ part: `clock of service ${service}`, ready: true, reason: `${words}. ${hint}` },
  }));
}

const SHOWN = 20;
const RUNS_MAX = 1_000;

export async function healthOf(
  drops: readonly DropState[],
  configured: { readonly drops: readonly string[]; readonly services: readonly string[] },
  serviceWaits: ReadonlyMap<string, string>,
  ledger: Ledger,
  missing: readonly MissingFile[],
  lanes: readonly LaneWait[],
): Promise<readonly HealthPart[]> {
  const parts: HealthPart[] = drops.map((state) => ({
    part: `drop ${state.drop}`,
    ready: isPaused(state) || (state.lastError === null && state.lastCompletePoll !== null),
    reason: dropWords(state),
  }));
  for (const service of configured.services) {
    const reason = serviceWaits.get(service);
    parts.push({
      part: `service ${service}`,
      ready: reason === undefined,
      reason: reason ?? "no fault is known",
    });
  }
  for (const drop of await ledger.groupsOf(INTAKE_STATES, "drop")) {
    if (configured.drops.includes(drop)) continue;
    const reason = "its files are in progress, but it is no longer in the configuration";
    parts.push({ part: `drop ${drop}`, ready: false, reason });
  }
  for (const file of missing) parts.push({ part: `trigger ${file.trigger}`, ready: true, reason: missingWords(file) });
  const resting = await unresolvedRuns(ledger, null);
  const [latest] = resting;
  const needs = resting.length === 1 ? "1 run needs attention" : `${resting.length} runs need attention, the latest`;
  parts.push({
    part: "runs",
    ready: true,
    reason: latest === undefined ? "no run needs attention" : `${needs}: ${runWords(latest)}`,
  });
  parts.push(...(await heldHealth(ledger)), ...(await unconfirmedHealth(ledger)), ...laneHealth(lanes));
  parts.push(...(await occupiedHealth(ledger)), ...(await unmatchedHealth(ledger, configured.drops)));
  return parts;
}

/** Accepted runs whose storage was not confirmed in time. */
async function unconfirmedHealth(ledger: Ledger): Promise<readonly HealthPart[]> {
  const unconfirmed = await ledger.restingIn(["unconfirmed"], RUNS_MAX);
  const [latest] = unconfirmed;
  if (latest === undefined) return [];
  const count = unconfirmed.length === RUNS_MAX ? `${RUNS_MAX} or more` : unconfirmed.length;
  const reason =
    `${count} accepted and not confirmed, the latest ${latest.run.path}: ` + `${latest.run.reason?.message ?? ""}`;
  return [{ part: "outcomes", ready: true, reason }];
}

const WAITING_STATES = runStatesThat(({ isInProgress, isAwaited }) => isInProgress || isAwaited);
/** Nothing of these can be done without their drop. */
const INTAKE_STATES = runStatesThat(({ stage }) => stage === "intake");
export const WAITING_SHOWN = 200;

export interface WaitingQuery {
  /** Most files of each drop, and most runs. */
  readonly limit?: number | undefined;
  /** `next` of the part before. */
  readonly after?: string | undefined;
}

export interface WaitingPart {
  readonly files: readonly WaitingFile[];
  /** How many there are in all parts. */
  readonly total: number;
  /** Null at the end. */
  readonly next: string | null;
}

/** Names of the lists of runs in `next`, beside those of drops, which begin with a letter or a digit. */
const [RUNS, CONTAINERS] = [".runs", ".opened"];

async function countWaiting(ledger: Ledger, drops: readonly string[]): Promise<number> {
  let sum = (await ledger.finishedFiles.occupied()).length;
  for (const drop of drops) sum += await ledger.countArrivals(drop, UNCLAIMED_STATES);
  return sum + (await ledger.countRuns(WAITING_STATES, "awaited")) + (await ledger.countRuns(["opened"], "unfinished"));
}

/**
 * For `runs --waiting`. The daemon knows more than its ledger: how far a file has settled (`places`), and why a run
 * is not in progress (`waitReason`). The first part always includes the first runs of `lanes` that wait too long.
 */
export async function waitingFiles(
  ledger: Ledger,
  places: readonly WaitingPlace[],
  waitReason: (run: Run) => string | undefined,
  lanes: readonly LaneWait[],
  nowMs: number,
  { limit = WAITING_SHOWN, after }: WaitingQuery = {},
): Promise<WaitingPart> {
  const files: WaitingFile[] = [];
  // Each list continues by itself; one that is at its end is not among them.
  const from = after === undefined ? null : new Map(after.split(",").map((one) => one.split(":") as [string, string]));
  const next: string[] = [];
  const part = async <T extends { readonly id: string | number }>(
    list: string,
    read: (id?: string) => Promise<T[]>,
  ) => {
    const found = from === null || from.has(list) ? await read(from?.get(list)) : [];
    if (found.length === limit) next.push(`${list}:${found.at(-1)?.id}`);
    return found;
  };
  for (const place of places) {
    const read = async (id = "0") => [...(await ledger.arrivalsIn(place.drop, UNCLAIMED_STATES, limit, Number(id)))];
    for (const arrival of await part(place.drop, read)) files.push(waitingArrival(arrival, place, nowMs));
  }
  const eventsArrive = new Map(places.map((place) => [place.drop, place.eventsArrive]));
  for (const file of from === null ? await ledger.finishedFiles.occupied() : [])
    files.push(waitingAsOccupied(file, eventsArrive.get(file.drop) ?? null));
  const runs = (list: string, states: readonly RunState[], filter: RunFilter) =>
    part(list, async (id) => [...(await ledger.runsIn(states, { ...filter, limit, ...(id && { after: id }) }))]);
  const running = await runs(RUNS, WAITING_STATES, { unsettled: true });
  // Includes containers that wait until a person resolves one of their entries.
  const containers = await runs(CONTAINERS, ["opened"], { unfinished: true });
  const overdue = new Map(lanes.filter((lane) => lane.overdue).map((lane) => [lane.run.id, lane]));
  const shown = [...running, ...containers];
  const ids = new Set(shown.map(({ id }) => id));
  const late = from === null ? [...overdue.values()] : [];
  const others = late.map(({ run }) => run).filter(({ id }) => !ids.has(id));
  for (const run of [...others, ...shown]) {
    const lane = overdue.get(run.id);
    const known = waitReason(run) ?? run.reason?.message ?? (await earlierRun(run, ledger));
    files.push({
      drop: run.drop,
      path: run.path,
      state: run.state,
      since: run.changedAt,
      reason: known ?? RUN_STATES[run.state].waitsFor,
      runId: run.id,
      overdue: lane !== undefined,
      eventsArrive: eventsArrive.get(run.drop) ?? null,
      ...(lane === undefined ? {} : { holdsUp: { since: lane.since, behind: lane.behind } }),
    });
  }
  const names = places.map(({ drop }) => drop);
  return { files, total: await countWaiting(ledger, names), next: next.length === 0 ? null : next.join(",") };
}

function waitingArrival(arrival: Arrival, place: WaitingPlace, nowMs: number): WaitingFile {
  const { drop, eventsArrive, overdueAfterMs = Number.POSITIVE_INFINITY } = place;
  const file = { drop, path: arrival.path, state: arrival.state, runId: null, eventsArrive };
  if (arrival.state !== "settling")
    return { ...file, since: arrival.changedAt, reason: arrival.reason, overdue: false };
  if (place.paused !== undefined && place.paused !== null)
    return { ...file, since: arrival.seenAt, reason: place.paused, overdue: false };
  const reported = place.waiting.find(({ path }) => path === arrival.path);
  const waitedMs = nowMs - Date.parse(arrival.seenAt);
  return {
    ...file,
    since: arrival.seenAt,
    reason: reported?.reason ?? `${arrival.reason}; the next poll checks it again`,
    overdue: reported?.overdue ?? waitedMs >= overdueAfterMs,
  };
}

/** An earlier run of the same lane with a common target; only a mapped run has targets. */
async function earlierRun(run: Run, ledger: Ledger): Promise<string | undefined> {
  if (run.state !== "mapped") return undefined;
  const earlier = await ledger.blockedBy(run);
  return earlier === null
    ? undefined
    : `waits for ${earlier.path} (run ${earlier.id}), which came earlier and has a target in common`;
}

/** Why `gateway --until-idle` exits 1: one line each. */
export async function concernsOf(
  drops: readonly DropState[],
  ledger: Ledger,
  running: readonly Run[],
  since: IsoInstant,
  ofResting = true,
): Promise<string[]> {
  const concerns: string[] = [];
  for (const { drop, lastError } of drops) {
    if (lastError !== null) concerns.push(`drop ${drop} could not be polled: ${lastError.message}`);
  }
  const resting = ofResting ? await unresolvedRuns(ledger, since) : [];
  for (const run of resting.slice(0, SHOWN)) concerns.push(`${runWords(run)} [headgate trace ${run.id}]`);
  if (resting.length > SHOWN) concerns.push(`${moreWords(resting.length - SHOWN)} like these`);
  const occupied = await ledger.finishedFiles.occupied();
  concerns.push(...occupied.slice(0, SHOWN).map(occupiedWords));
  if (occupied.length > SHOWN) concerns.push(`${moreWords(occupied.length - SHOWN)} that changed and wait`);
  const undone = running.filter(({ state }) => !RUN_STATES[state].needsAttention);
  for (const run of undone.slice(0, SHOWN)) {
    concerns.push(
      `${run.path} at ${run.drop} is only ${run.state}: ${run.reason?.message ?? "it was its turn"} [headgate ` +
        `trace ${run.id}]`,
    );
  }
  if (undone.length > SHOWN) concerns.push(`${moreWords(undone.length - SHOWN)} that are not done`);
  return concerns;
}

function moreWords(count: number): string {
  return `${count} more ${count === 1 ? "file" : "files"}`;
}

/** A paused drop behaves as a person decided. */
export function isPaused({ paused }: DropState): boolean {
  return paused !== undefined && paused !== null;
}

/** In what state a drop's polls are, in words. */
export function dropWords({ paused, lastError, lastCompletePoll, overdueCount }: DropState): string {
  if (paused !== undefined && paused !== null) return paused;
  if (lastError !== null) return lastError.message;
  if (lastCompletePoll === null) return "not polled yet";
  const overdue = overdueCount === 0 ? "" : `; ${overdueCount} files have not settled for too long`;
  return `polled at ${lastCompletePoll}${overdue}`;
}

/**
 * A run at rest needs a person when its file is still at its drop, or is nowhere, which the person has to know; or,
 * wherever the file is, when the outcome of its readings is unknown, or all its rows were left out.
 */
export function isUnattended({ run, arrival }: RestingRun): boolean {
  // The source of such a run is finished as that of a delivered one.
  if (RUN_STATES[run.state].end === "delivered") return true;
  return arrival.goneAt === null || run.reason?.code === READINGS_LOST;
}

/** Files that need a person, counted up to 1000. */
export async function countUnresolved(ledger: Ledger): Promise<number> {
  return (await unresolvedRuns(ledger, null)).length;
}

/** Runs that are not resolved yet, and those that came to rest since. */
async function unresolvedRuns(ledger: Ledger, since: IsoInstant | null): Promise<readonly Run[]> {
  const resting = await ledger.restingIn(ATTENTION_STATES, RUNS_MAX);
  return resting
    .filter((one) => isUnattended(one) || (since !== null && one.run.changedAt >= since))
    .map(({ run }) => run);
}

export async function summarise(
  ledger: Ledger,
  drops: readonly { readonly name: string; readonly kind: DropKind }[],
  since: IsoInstant,
): Promise<Summary> {
  const tally = await ledger.tally(since);
  return {
    files: tally.files,
    points: tally.points,
    drops: Object.fromEntries(drops.map(({ name, kind }) => [name, { kind, files: tally.drops.get(name) ?? 0 }])),
  };
}

// Runs that the guard holds before their first push: in health, with the reason.

type HeldLedger = Pick<Ledger, "restingIn">;

/** None when no run is held. A held run resumes without the gateway's help, so the gateway is ready all the same. */
async function heldHealth(ledger: HeldLedger): Promise<readonly HealthPart[]> {
  const held = await ledger.restingIn(["held"], RUNS_MAX);
  const last = held[0]?.run;
  if (last === undefined) return [];
  const count = held.length === RUNS_MAX ? `${RUNS_MAX} or more` : held.length;
  const reason = `${count} held; the last: ${last.path} at ${last.drop}: ${last.reason?.message ?? ""}`;
  return [{ part: "held runs", ready: true, reason }];
}

/** Ids of all held runs: their share of the spool is looked up by them. */
export async function heldRuns(ledger: Pick<Ledger, "runsIn">): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (let after = "", more = true; more && ids.size < IDS_MAX; ) {
    const some = await ledger.runsIn(["held"], { after, limit: RUNS_MAX });
    for (const { id } of some) ids.add(id);
    after = some.at(-1)?.id ?? after;
    more = some.length === RUNS_MAX;
  }
  return ids;
}

// Source files that could not be archived or deleted, one matter for each drop: health, notifications, metrics and the
// console describe them in these words.

/** The part of `FinishFaults` that is shown. */
export interface UnfinishedFiles {
  list(): readonly {
    readonly drop: string;
    readonly path: string;
    readonly runId: string | null;
    readonly since: string;
    readonly code: string | null;
    readonly reason: string;
  }[];
  note(file: { readonly drop: string; readonly path: string; readonly runId: string | null }, thrown: null): void;
  readonly isKnown: boolean;
}

/** By drop, the oldest first. A run that a person cancelled or forgot meanwhile is no longer one of them. */
async function byDrop(files: UnfinishedFiles, ledger: Pick<Ledger, "run">) {
  const first = new Map<string, { count: number; one: ReturnType<UnfinishedFiles["list"]>[number] }>();
  for (const one of files.list()) {
    const known = first.get(one.drop);
    if (known !== undefined) known.count += 1;
    else if (one.runId === null || (await ledger.run(one.runId)) !== null) first.set(one.drop, { count: 1, one });
    else files.note(one, null);
  }
  return [...first.values()];
}

export async function unfinishedConcerns(files: UnfinishedFiles, ledger: Pick<Ledger, "run">) {
  return (await byDrop(files, ledger)).map(({ count, one }): Concern => {
    const { drop, path, since, code, reason } = one;
    const others = count === 1 ? "" : `, as ${count - 1} more at ${drop}`;
    const text = `${path} at ${drop} cannot be archived or deleted and stays where it is${others}: ${reason}`;
    const facts = { drop, file: path, run: one.runId, code, since, count };
    return { key: `finish ${drop}`, kind: "finish", text, facts };
  });
}

/** The gateway is ready all the same: readings are delivered. */
export async function unfinishedHealth(
  files: UnfinishedFiles,
  ledger: Pick<Ledger, "run">,
): Promise<readonly HealthPart[]> {
  const concerns = await unfinishedConcerns(files, ledger);
  return concerns.map(({ text, facts }) => ({ part: `finish at ${facts["drop"]}`, ready: true, reason: text }));
}

export function measureUnfinished(
  registry: Registry,
  sources: { unfinished(): ReturnType<UnfinishedFiles["list"]>; drops(): readonly { readonly drop: string }[] },
): void {
  new Gauge({
    name: "headgate_files_unfinished",
    help: "Source files that could not be archived or deleted at the last attempt",
    labelNames: ["drop"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { drop } of sources.drops()) this.set({ drop }, 0);
      for (const { drop } of sources.unfinished()) this.inc({ drop });
    },
  });
}

// Files that no trigger claims, at drops that do not expect them (`expectUnmatched`): each needs a trigger, or to be
// taken away. Health, notifications, metrics and `headgate quarantine` describe them in these words.

type Files = Pick<Ledger, "files">;

function unmatchedWords({ path, drop }: Pick<Arrival, "path" | "drop">): string {
  return `no trigger claims ${path} at ${drop}`;
}

async function countsOf({ files }: Files, drops: readonly string[]) {
  const counted = drops.map(async (drop) => ({ drop, count: (await files.unmatchedCount(drop, COUNTED_MAX)).count }));
  return (await Promise.all(counted)).filter(({ count }) => count > 0);
}

/** How many there are in all drops. */
export async function countUnmatched(ledger: Files, drops: readonly string[]): Promise<number> {
  return (await countsOf(ledger, drops)).reduce((sum, { count }) => sum + count, 0);
}

/** The gateway is ready all the same: other files are processed. */
async function unmatchedHealth(ledger: Files, drops: readonly string[]): Promise<readonly HealthPart[]> {
  const found = await countsOf(ledger, drops);
  return await Promise.all(
    found.map(async ({ drop, count }) => {
      const names = (await ledger.files.unmatched(drop, NAMED_MAX)).map(({ path }) => path).join(", ");
      const more = count > NAMED_MAX ? `, and ${count - NAMED_MAX} more` : "";
      const what = count === 1 ? "1 file" : `${count} files`;
      const reason = `no trigger claims ${what}: ${names}${more}; \`headgate quarantine\` says why`;
      return { part: `unmatched files at ${drop}`, ready: true, reason };
    }),
  );
}

/** A file that settles again keeps its former state: it may be one that is written to now and then. */
export async function unmatchedConcerns(
  { files, settlingAges }: Files & Pick<Ledger, "settlingAges">,
  drops: readonly string[],
): Promise<Attention> {
  const concerns: Concern[] = [];
  const unknown = new Set<string>();
  for (const drop of drops) {
    for (const { id } of await settlingAges(drop, CONCERNS_MAX, 0)) unknown.add(keyOf(id));
    const listed = await files.unmatched(drop, CONCERNS_MAX);
    for (const arrival of listed) {
      const { id, path, changedAt, reason } = arrival;
      const facts = { drop, file: path, code: UNMATCHED_CODE, changedAt, reason };
      concerns.push({ key: keyOf(id), kind: "unmatched", text: unmatchedWords(arrival), facts });
    }
    if (listed.length < CONCERNS_MAX) continue;
    const more = (await files.unmatchedCount(drop, COUNTED_MAX)).count - CONCERNS_MAX;
    const facts = { drop, code: UNMATCHED_CODE, count: more };
    const text = `no trigger claims ${more} more files at ${drop}`;
    if (more > 0) concerns.push({ key: `unmatched at ${drop}`, kind: "unmatched", text, facts });
  }
  return { concerns, unknown };
}

function keyOf(arrivalId: number): string {
  return `unmatched ${arrivalId}`;
}

export function measureUnmatched(
  registry: Registry,
  { ledger, drops }: { readonly ledger: Files; drops(): readonly { readonly drop: string }[] },
): void {
  new Gauge({
    name: "headgate_files_unmatched",
    help: "Files at the drop that no trigger claims, without those that the drop expects (`expectUnmatched`)",
    labelNames: ["drop"],
    registers: [registry],
    async collect() {
      const names = drops().map(({ drop }) => drop);
      const found = await countsOf(ledger, names);
      this.reset();
      for (const drop of names) this.set({ drop }, found.find((one) => one.drop === drop)?.count ?? 0);
    },
  });
}
