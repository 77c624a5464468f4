/**
 * Records at the hub what became of its files. Each event of the gateway about a file has its record compared with the
 * ledger; so have all records in a state that will change, at start and then now and again, since an update may have
 * been lost, or made by another node; and when another node has left.
 */
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { placeWords } from "#core/text.ts";
import type { FileEvent } from "#gateway/gateway.ts";
import type { EntriesState, Ledger } from "#gateway/ledger/ledger.ts";
import type { Arrival, ArrivalState, Reason, Run, RunState } from "#gateway/model.ts";
import { RUN_STATES, runStatesThat } from "#gateway/states.ts";
import type { FileChange, FileRecord, FileStore } from "#hub/store/stored-files.ts";
import type { FileState } from "#wire/storage.ts";
import { entryOf, fileIdOf } from "./hub-drop.ts";

/** Entries of a container that a reason names. */
const NAMED_MAX = 3;

const OF_ARRIVAL: Readonly<Record<ArrivalState, FileState>> = {
  settling: "received",
  unmatched: "unclaimed",
  duplicate: "unclaimed",
  skipped: "unclaimed",
  matched: "processing",
};

/** The greatest of those of its entries is that of their container. */
const WEIGHT: Readonly<Record<FileState, number>> = {
  processing: 4,
  quarantined: 3,
  discarded: 2,
  "partly-discarded": 1,
  stored: 0,
  unclaimed: 0,
  received: 0,
};

/** The reason of a file of master data that was applied. */
const APPLIED = "HG-HUB-009";

/** The states in which the gateway has something left to do. */
const CHANGING: readonly FileState[] = ["received", "processing"];
/** Events by which a file stays what its record says; what comes of them is another event. */
const WITHOUT_CHANGE: ReadonlySet<string> = new Set(["arrival.gone", "source.left", "batch.sending", "batch.accepted"]);
/** Events that continue the work on a file, and change nothing that its record says. */
const ONWARDS: ReadonlySet<string> = new Set(runStatesThat(({ isOpen }) => isOpen).map((state) => `run.${state}`));
/** Files that are known to be worked on; others are compared at each event. */
const IN_PROGRESS_MAX = 20_000;
/** Milliseconds in which events are collected, so that a file with several is read once. */
const COLLECT_MS = 50;
/** While many files are worked on, events are collected for so many times the time of an update, to this limit. */
const COLLECT_FACTOR = 5;
const COLLECT_MAX_MS = 1_000;
const RETRY_MS = 2_000;
const COMPARE_ALL_MS = 300_000;
const READ_AT_ONCE = 200;

export interface FileUpdatesParts {
  readonly files: Pick<FileStore, "list" | "advance">;
  /** The account of a drop; undefined for none of the hub's. */
  accountOf(drop: string): number | undefined;
  /** The drops of all accounts. */
  drops(): readonly string[];
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Logger;
}

export class FileUpdates {
  readonly #parts: FileUpdatesParts;
  /** Files with events that were not checked yet, by their drops. */
  readonly #due = new Map<string, Set<number>>();
  /** Files whose records say that they are worked on, and nothing else. */
  readonly #inProgress = new Set<number>();
  readonly #stop = new AbortController();
  #rest = new AbortController();
  #loop: Promise<void> | null = null;
  #compareAllAtMs = 0;
  #fails = false;

  constructor(parts: FileUpdatesParts) {
    this.#parts = parts;
  }

  note({ what, drop, path }: Pick<FileEvent, "what" | "drop" | "path">): void {
    const isEntry = path.includes("!/");
    // A container has ended when its last entry is finished.
    const isEnd = isEntry && what === "source.left";
    if ((WITHOUT_CHANGE.has(what) && !isEnd) || this.#parts.accountOf(drop) === undefined) return;
    const id = fileIdOf(path);
    // The record of a container names the entry that is worked on.
    if (ONWARDS.has(what) && !isEntry && this.#inProgress.has(id)) return;
    this.#add(drop, id);
    this.#rest.abort();
  }

  /** Soon, instead of at the next time. */
  compareAll(): void {
    this.#compareAllAtMs = 0;
    this.#rest.abort();
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Records what is due before it ends. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#rest.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    let collectMs = COLLECT_MS;
    while (!this.#stop.signal.aborted) {
      let restMs = COMPARE_ALL_MS;
      try {
        await clock.sleep(collectMs, this.#stop.signal);
        const begunMs = clock.monotonicMs();
        if (begunMs >= this.#compareAllAtMs) await this.#compareAll();
        await this.#updateDue();
        const tookMs = clock.monotonicMs() - begunMs;
        collectMs = Math.min(COLLECT_MAX_MS, Math.max(COLLECT_MS, tookMs * COLLECT_FACTOR));
        if (this.#fails) log.info("the states of stored files can be recorded again");
        this.#fails = false;
      } catch (thrown) {
        if (!this.#fails) log.warn({ err: thrown }, `states of stored files are recorded later: ${wordsOf(thrown)}`);
        this.#fails = true;
        restMs = RETRY_MS;
      }
      if (this.#stop.signal.aborted) break;
      this.#rest = new AbortController();
      if (this.#due.size === 0 || this.#fails) await clock.sleep(restMs, this.#rest.signal);
    }
    await this.#updateDue().catch((thrown: unknown) =>
      log.warn({ err: thrown }, "states of stored files are recorded at the next start"),
    );
  }

  /** An update that was lost is made up for. */
  async #compareAll(): Promise<void> {
    const { files, clock } = this.#parts;
    for (const drop of this.#parts.drops()) {
      const accountId = this.#parts.accountOf(drop);
      if (accountId === undefined) continue;
      for (let offset = 0, more = true; more; offset += READ_AT_ONCE) {
        const page = { offset, limit: READ_AT_ONCE, isCounted: false };
        const { rows } = await files.list(accountId, { states: CHANGING }, page);
        for (const { id } of rows) this.#add(drop, id);
        more = rows.length === READ_AT_ONCE;
      }
    }
    this.#compareAllAtMs = clock.monotonicMs() + COMPARE_ALL_MS;
  }

  #add(drop: string, id: number): void {
    const due = this.#due.get(drop) ?? new Set();
    this.#due.set(drop, due.add(id));
  }

  /** A file with another event from here on is due once more. */
  async #updateDue(): Promise<void> {
    for (const [drop, due] of [...this.#due]) {
      this.#due.delete(drop);
      const ids = [...due];
      const accountId = this.#parts.accountOf(drop);
      try {
        while (ids.length > 0 && accountId !== undefined) {
          await this.#update(drop, accountId, ids.slice(0, READ_AT_ONCE));
          ids.splice(0, READ_AT_ONCE);
        }
      } catch (thrown) {
        for (const id of ids) this.#add(drop, id);
        throw thrown;
      }
    }
  }

  async #update(drop: string, accountId: number, ids: readonly number[]): Promise<void> {
    const { files } = this.#parts;
    // An event while the ledger is read may say more than what is read.
    for (const id of ids) this.#inProgress.delete(id);
    const { rows } = await files.list(accountId, { ids }, { offset: 0, limit: null });
    const changes: FileChange[] = [];
    for (const file of rows) {
      const progress = await progressOf(drop, file, this.#parts.ledger);
      if (progress?.state === "processing" && progress.reason === null && this.#inProgress.size < IN_PROGRESS_MAX)
        this.#inProgress.add(file.id);
      if (progress !== null && !isSame(progress, file)) changes.push(this.#changeTo(progress, file));
    }
    if (changes.length === 0) return;
    const advanced = await files.advance(accountId, changes);
    // A state in between was passed before it could be recorded.
    const late = changes.filter((_, at) => advanced[at] === false);
    const steps = late.flatMap((one) => [{ ...one, state: "processing" as const }, one]);
    if (steps.length > 0) await files.advance(accountId, steps);
  }

  #changeTo(progress: Progress, { id, offers }: FileRecord): FileChange {
    return { id, ...progress, atMs: this.#parts.clock.now().epochMilliseconds, offers };
  }
}

function isSame(progress: Progress, file: FileRecord): boolean {
  return (
    progress.state === file.state &&
    progress.reason === file.reason &&
    progress.run === file.run &&
    progress.triggerId === file.triggerId
  );
}

// The state of a stored file, by the ledger of the gateway that works on it.

type Progress = Pick<FileRecord, "state" | "reason" | "run" | "triggerId">;

type LedgerReads = Pick<Ledger, "arrivalsAt" | "runOf" | "run" | "entries" | "awaitedEntries">;

/** Null when the ledger has not seen the file as it is offered now. */
export async function progressOf(drop: string, file: FileRecord, ledger: LedgerReads): Promise<Progress | null> {
  const { path, mtime } = entryOf(file);
  const arrival = (await ledger.arrivalsAt(path, drop)).findLast((one) => one.mtime === mtime);
  if (arrival === undefined) return null;
  const progress = await progressAt(arrival, file, ledger);
  // At the gateway the triggers are named by their service, and here by their ids alone.
  const reason = progress.reason?.replaceAll(`trigger ${drop}:`, "trigger ").replaceAll(`${drop}:`, "trigger ");
  return { ...progress, reason: reason ?? null };
}

async function progressAt(arrival: Arrival, file: FileRecord, ledger: LedgerReads): Promise<Progress> {
  const run = await ledger.runOf(arrival.id);
  if (run === null) return ofArrival(file, arrival);
  return run.state === "opened" ? await ofContainer(file, run, ledger) : ofRun(file, run);
}

function ofArrival({ triggerId }: FileRecord, { state, reason }: Arrival): Progress {
  const why = state === "unmatched" ? `no trigger claims it: ${reason || "the account has none"}` : reason;
  return { state: OF_ARRIVAL[state], reason: state === "settling" ? null : why, run: null, triggerId };
}

function ofRun({ via, triggerId: known }: FileRecord, run: Run): Progress {
  const { id, points } = run;
  const state = run.state === "discarded" && points.stored > 0 ? "partly-discarded" : stateOfRun(run.state);
  // The run that opens a container has no trigger; a custom push named the trigger of all its files by the token.
  const triggerId = via === "generic" ? known : (triggerIdOf(run) ?? known);
  return { state, reason: wordsOfRun(run), run: id, triggerId };
}

function wordsOfRun({ state, reason, points }: Run): string | null {
  if (reason?.code === APPLIED) return reason.message;
  if (reason !== null) return reasonWords(reason);
  if (RUN_STATES[state].standing === "empty") return "it holds no readings";
  if (state === "cancelled") return "its run was cancelled";
  return points.rejected === 0 ? null : `${points.rejected} readings or rows were refused`;
}

async function ofContainer({ triggerId }: FileRecord, container: Run, ledger: LedgerReads): Promise<Progress> {
  const entries = await ledger.entries(container.arrivalId);
  const common = { run: container.id, triggerId };
  if (entries.inProgress !== null || entries.unclaimed.length > 0) {
    const reason =
      entries.inProgress === null ? null : `${nameIn(entries.inProgress.path)}: ${waitWords(entries.inProgress)}`;
    return { ...common, state: "processing", reason };
  }
  // An entry that was accepted is done for its container, and its outcome may still discard readings.
  if ((await ledger.awaitedEntries(container.arrivalId)) > 0) return { ...common, state: "processing", reason: null };
  const { done, staying } = entries;
  if (staying.length === 0) return { ...common, state: "stored", reason: done === 0 ? "it holds no files" : null };
  return { ...common, state: stateOfAll(entries), reason: await stayingWords(entries, ledger) };
}

function waitWords({ state, reason }: Run): string {
  return reason === null ? state : reasonWords(reason);
}

function stateOfAll({ done, staying }: EntriesState): FileState {
  const states = staying.map(({ state }) => stateOf(state)).toSorted((one, other) => WEIGHT[other] - WEIGHT[one]);
  const [worst = "stored"] = states;
  if (WEIGHT[worst] === 0) return done > 0 || states.includes("stored") ? "stored" : "unclaimed";
  return worst === "discarded" && done > 0 ? "partly-discarded" : worst;
}

function stateOf(state: RunState | ArrivalState): FileState {
  return state in OF_ARRIVAL ? OF_ARRIVAL[state as ArrivalState] : stateOfRun(state as RunState);
}

function stateOfRun(state: RunState): FileState {
  const { isAtRest, isAccepted, end } = RUN_STATES[state];
  if (!isAtRest) return "processing";
  if (end === "delivered") return "stored";
  return isAccepted ? "discarded" : "quarantined";
}

async function stayingWords({ done, staying }: EntriesState, ledger: LedgerReads): Promise<string> {
  const named = await Promise.all(
    staying.slice(0, NAMED_MAX).map(async ({ path, state, runId }) => {
      const run = runId === null ? null : await ledger.run(runId);
      const why = run === null ? "no trigger claims it" : (wordsOfRun(run) ?? state);
      return `${nameIn(path)}: ${why}`;
    }),
  );
  const more = staying.length > NAMED_MAX ? `; and ${staying.length - NAMED_MAX} more` : "";
  return `${staying.length} of ${staying.length + done} files in it: ${named.join("; ")}${more}`;
}

/** The name of an entry in its container. */
function nameIn(path: string): string {
  return path.slice(path.indexOf("!/") + 2);
}

function reasonWords({ code, message, place }: Reason): string {
  return `${code}: ${message}${placeWords(place, " (", ")")}`;
}

/** Triggers of a service are named `<service>:<id>`. */
function triggerIdOf({ binding }: Run): number | null {
  const id = Number(binding.trigger.slice(binding.trigger.lastIndexOf(":") + 1));
  return binding.trigger.includes(":") && Number.isSafeInteger(id) ? id : null;
}
