/**
 * The state of the gateway as a whole: whether it is ready, whether it is idle, files that need attention, and the
 * summary at the end.
 */
import type { Ledger, RestingRun, RunFilter } from "../ledger/ledger.ts";
import type { Arrival, DropKind, DropState, IsoInstant, Run, RunState, Summary } from "../model.ts";
import { READINGS_LOST } from "../model.ts";
import { ATTENTION_STATES, RUN_STATES, runStatesThat, UNCLAIMED_STATES } from "../states.ts";
import { runWords } from "./attention-log.ts";
import { heldHealth } from "./held-runs.ts";
import { type MissingFile, missingWords } from "./late-files.ts";
import { occupiedHealth, occupiedWords, waitingAsOccupied } from "./occupied-files.ts";
import { unmatchedHealth } from "./unmatched-files.ts";
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
