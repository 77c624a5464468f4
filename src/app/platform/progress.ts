/** The state of a stored file, by the ledger of the gateway that works on it. */

import { placeWords } from "#core/place-words.ts";
import type { EntriesState, Ledger } from "#gateway/ledger/ledger.ts";
import type { Arrival, ArrivalState, Reason, Run, RunState } from "#gateway/model.ts";
import { RUN_STATES } from "#gateway/states.ts";
import type { FileRecord } from "#hub/store/store.ts";
import type { FileState } from "#wire/storage.ts";
import { entryOf } from "./hub-drop.ts";

export type Progress = Pick<FileRecord, "state" | "reason" | "run" | "triggerId">;

type LedgerReads = Pick<Ledger, "arrivalsAt" | "runOf" | "run" | "entries" | "awaitedEntries">;

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

/** The reason of a file of master data that was applied. */
const APPLIED = "HG-HUB-009";

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
