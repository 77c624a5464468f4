/** What people ask about the whole: whether it is ready, whether it is idle, what needs a person, and the summary at the end. */
import type { Ledger } from "../ledger/ledger.ts";
import type { DropKind, IsoInstant, Run, RunState, Summary } from "../model.ts";
import { type MissingFile, missingWords } from "./late-files.ts";

/** What a drop's watcher tells of itself. */
export interface DropState {
  readonly drop: string;
  readonly kind: DropKind;
  readonly lastCompletePoll: IsoInstant | null;
  readonly completePolls: number;
  readonly consecutiveFailures: number;
  readonly lastError: {
    readonly code: string | null;
    readonly message: string;
    readonly hint: string | null;
  } | null;
  readonly settlingCount: number;
  readonly leftCount: number;
  /** Files that have not settled for longer than they should. */
  readonly overdueCount: number;
  /** Files that are not taken yet, and why; the first of them when there are many. */
  readonly waiting: readonly { readonly path: string; readonly reason: string; readonly waitingMs: number }[];
}

/** One file on its way, what it waits for and since when. */
export interface WaitingFile {
  readonly drop: string;
  readonly path: string;
  /** State of the arrival, or of its run. */
  readonly state: string;
  readonly since: IsoInstant;
  readonly reason: string;
  readonly runId: string | null;
}

/** One part of the gateway and whether it works, with the reason in words. */
export interface HealthPart {
  readonly part: string;
  readonly ready: boolean;
  readonly reason: string;
}

/** Where runs rest that a person has to look at. */
const NEEDS_A_PERSON: readonly RunState[] = ["quarantined", "held", "discarded"];
const SHOWN = 20;
const LOOKED_THROUGH = 1_000;

export async function healthOf(
  drops: readonly DropState[],
  configured: { readonly drops: readonly string[]; readonly services: readonly string[] },
  serviceWaits: ReadonlyMap<string, string>,
  ledger: Ledger,
  missing: readonly MissingFile[],
): Promise<readonly HealthPart[]> {
  const parts: HealthPart[] = drops.map((state) => ({
    part: `drop ${state.drop}`,
    ready: state.lastError === null && state.lastCompletePoll !== null,
    reason: dropWords(state),
  }));
  for (const service of configured.services) {
    const reason = serviceWaits.get(service);
    parts.push({
      part: `service ${service}`,
      ready: reason === undefined,
      reason: reason ?? "nothing is known against it",
    });
  }
  for (const drop of await ledger.groupsOf(["claimed", "fetched"], "drop")) {
    if (configured.drops.includes(drop)) continue;
    const reason = "files of it are on their way, but it is not in the configuration any more";
    parts.push({ part: `drop ${drop}`, ready: false, reason });
  }
  for (const file of missing)
    parts.push({ part: `trigger ${file.trigger}`, ready: true, reason: missingWords(file) });
  const resting = await needAPerson(ledger, null);
  parts.push({
    part: "runs",
    ready: true,
    reason: resting.length === 0 ? "none needs a person" : `${resting.length} need a person`,
  });
  return parts;
}

const UNDER_WAY: readonly RunState[] = [
  "claimed",
  "fetched",
  "mapping",
  "mapped",
  "delivering",
  "accepted",
  "held",
];
const WAITING_SHOWN = 200;

/** For `runs --waiting`. The daemon knows more than its ledger: how far a file has settled, and why a run is not in hand. */
export async function waitingFiles(
  ledger: Ledger,
  drops: readonly Pick<DropState, "drop" | "waiting">[],
  waitReason: (runId: string) => string | undefined,
): Promise<readonly WaitingFile[]> {
  const files: WaitingFile[] = [];
  for (const { drop, waiting } of drops) {
    const reasons = new Map(waiting.map((file) => [file.path, file.reason]));
    for (const arrival of await ledger.arrivalsIn(drop, ["settling", "unmatched"], WAITING_SHOWN)) {
      files.push({
        drop,
        path: arrival.path,
        state: arrival.state,
        since: arrival.changedAt,
        reason: (arrival.state === "settling" ? reasons.get(arrival.path) : undefined) ?? arrival.reason,
        runId: null,
      });
    }
  }
  const underWay = await ledger.runsIn(UNDER_WAY, { limit: WAITING_SHOWN, unsettled: true });
  // Also those that wait for a person to see to one of their entries.
  const containers = await ledger.runsIn(["opened"], { limit: WAITING_SHOWN, unfinished: true });
  for (const run of [...underWay, ...containers]) {
    files.push({
      drop: run.drop,
      path: run.path,
      state: run.state,
      since: run.changedAt,
      reason: waitReason(run.id) ?? run.reason?.message ?? "its turn",
      runId: run.id,
    });
  }
  return files;
}

/** Why `gateway --until-idle` exits 1: one line each. */
export async function concernsOf(
  drops: readonly DropState[],
  ledger: Ledger,
  underWay: readonly Run[],
  since: IsoInstant,
): Promise<string[]> {
  const concerns: string[] = [];
  for (const { drop, lastError } of drops) {
    if (lastError !== null) concerns.push(`drop ${drop} could not be looked through: ${lastError.message}`);
  }
  for (const run of (await needAPerson(ledger, since)).slice(0, SHOWN)) {
    const place = run.reason?.place;
    const at =
      place?.row === undefined
        ? ""
        : ` (row ${place.row}${place.column === undefined ? "" : `, column ${place.column}`})`;
    concerns.push(
      `${run.path} at ${run.drop} is ${run.state}: ${run.reason?.message ?? ""}${at} [headgate trace ${run.id}]`,
    );
  }
  for (const run of underWay.slice(0, SHOWN)) {
    concerns.push(
      `${run.path} at ${run.drop} is only ${run.state}: ${run.reason?.message ?? "it was its turn"} [headgate trace ${run.id}]`,
    );
  }
  return concerns;
}

function dropWords({ lastError, lastCompletePoll, overdueCount }: DropState): string {
  if (lastError !== null) return lastError.message;
  if (lastCompletePoll === null) return "not looked through yet";
  const overdue = overdueCount === 0 ? "" : `; ${overdueCount} files have not settled for too long`;
  return `looked through at ${lastCompletePoll}${overdue}`;
}

/** Runs whose file still lies where it lay, so that nobody has seen to it, and those that came to rest since. */
async function needAPerson(ledger: Ledger, since: IsoInstant | null): Promise<readonly Run[]> {
  const found: Run[] = [];
  for (const run of await ledger.recentRuns(LOOKED_THROUGH, NEEDS_A_PERSON)) {
    const recent = since !== null && run.changedAt >= since;
    if (recent || (await ledger.arrival(run.arrivalId))?.goneAt === null) found.push(run);
  }
  return found;
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
    drops: Object.fromEntries(drops.map(({ name, kind }) => [name, { kind, files: tally.drops[name] ?? 0 }])),
  };
}
