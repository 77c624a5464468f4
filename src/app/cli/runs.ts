/** `headgate runs`: lists runs, newest first; with `--waiting`, files in progress and the reasons why they wait. */

import { systemClock } from "#core/clock.ts";
import { invalidOption } from "#core/errors.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { DropState, Run } from "#gateway/model.ts";
import { missingWords } from "#gateway/operations/late-files.ts";
import {
  WAITING_SHOWN,
  type WaitingFile,
  type WaitingPart,
  type WaitingQuery,
  waitingFiles,
} from "#gateway/operations/state-of-work.ts";
import { WaitingLanes } from "#gateway/operations/waiting-lanes.ts";
import { Pauses } from "#gateway/runs/pauses.ts";
import { missingFiles } from "#gateway/triggers/expectation.ts";
import { findingWords } from "#mapping/contract.ts";
import { askGateway } from "./ask-gateway.ts";
import type { CommandFrame } from "./command.ts";
import { limitOption, openLedgerToRead } from "./ledger/ledger-view.ts";
import { operatedConfigOption } from "./operated-config.ts";
import {
  inTone,
  noteCut,
  print,
  printJson,
  printTable,
  SHOWN_STATES,
  type ShownState,
  shownState,
  styled,
} from "./output.ts";

interface RunsOptions {
  readonly config: string;
  readonly limit?: string;
  readonly after?: string;
  readonly state?: string;
  readonly waiting?: boolean;
  readonly json?: boolean;
}

/** Runs in one query, where duplicates are searched among cancelled runs. */
const READ_AT_ONCE = 1_000;

export function addRuns({ command, action }: CommandFrame): void {
  command("runs", ["headgate runs -c gateway.yaml --state quarantined", "headgate runs -c gateway.yaml --waiting"])
    .addOption(operatedConfigOption())
    .option("-n, --limit <count>", "how many: 20, and with --waiting 200 of each drop and of runs")
    .option("--after <run>", "the runs before this one, such as the last of the part before; with --waiting its mark")
    .option("--state <states>", "only these states, separated by commas")
    .option("--waiting", "files and runs in progress, and the reason why each waits")
    .option("--json", "as JSON")
    .action(action((options: RunsOptions) => showRuns(options)));
}

async function showRuns(options: RunsOptions): Promise<number> {
  const { ledger, config } = await openLedgerToRead(options.config);
  try {
    if (options.waiting === true) return await showWaiting(ledger, config, options);
    if (options.json !== true) await printMissing(config, ledger);
    const states = statesOf(options.state);
    const { runs, all } = await recentRuns(ledger, limitOption(options.limit ?? "20"), states, options.after);
    const next = runs.at(-1)?.id ?? "";
    const how = `\`--after ${next}\` shows earlier ones, \`--limit ${all}\` all`;
    if (options.json === true) {
      printJson(runs);
      noteCut(runs.length, all, "runs", how, true);
      return 0;
    }
    await printNodes(ledger);
    const fleet = runs.some(({ node }) => node !== null) ? ["node"] : [];
    const head = ["run", "when", ...fleet, "drop", "file", "state", "points", "reason"];
    if (runs.length === 0) print("no runs yet");
    else
      printTable(
        head,
        runs.map((run) => runRow(run, fleet.length > 0)),
      );
    noteCut(runs.length, all, "runs", how);
    return 0;
  } finally {
    await ledger.close();
  }
}

/** The ledger records duplicates as runs that were given up, and their reason distinguishes them. */
async function recentRuns(
  ledger: Ledger,
  count: number,
  states: readonly ShownState[] | undefined,
  before: string | undefined,
): Promise<{ readonly runs: readonly Run[]; readonly all: number }> {
  const isDuplicate = (state: ShownState): state is "duplicate" => state === "duplicate";
  if (states === undefined || states.includes("duplicate") === states.includes("cancelled")) {
    const asked = states?.filter((state) => !isDuplicate(state));
    return { runs: await ledger.recentRuns(count, asked, before), all: await ledger.countRuns(asked) };
  }
  const asked = [...new Set(states.map((state) => (isDuplicate(state) ? "cancelled" : state)))];
  const runs: Run[] = [];
  let all = 0;
  for (let last: string | undefined, isMore = true; isMore; ) {
    const some = await ledger.recentRuns(READ_AT_ONCE, asked, last);
    const shown = some.filter((run) => states.includes(shownState(run)));
    all += shown.length;
    const wanted = shown.filter(({ id }) => before === undefined || id < before);
    runs.push(...wanted.slice(0, count - runs.length));
    last = some.at(-1)?.id;
    isMore = some.length === READ_AT_ONCE;
  }
  return { runs, all };
}

/** The nodes that share the ledger, where there are several. */
async function printNodes(ledger: Ledger): Promise<void> {
  for (const { node, alive, since, lastSeenAt, drops, runs } of await ledger.fleet.nodes()) {
    const polls = drops.length === 0 ? "polls no drop" : `polls ${drops.join(", ")}`;
    if (alive) print(`${styled("green", "node")}  ${node}: up since ${when(since)}, ${polls}, works on ${runs} runs`);
    else print(`${styled("yellow", "node")}  ${node}: last renewed its lease ${when(lastSeenAt)}`);
  }
}

/** Files that triggers expect and that have not arrived. */
async function printMissing(config: GatewayConfig, ledger: Ledger): Promise<void> {
  const now = systemClock.now();
  for (const file of await missingFiles(config.triggers, ledger, now, now))
    print(`${styled("yellow", "late")}  ${missingWords(file)}`);
}

async function showWaiting(ledger: Ledger, config: GatewayConfig, options: RunsOptions): Promise<number> {
  const { after } = options;
  const query = { limit: limitOption(options.limit ?? String(WAITING_SHOWN)), after };
  const address = `waiting?limit=${query.limit}${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`;
  const reported = await askGateway<WaitingPart>(config, address);
  const { files, total, next } = reported ?? (await queryLedger(ledger, config, query));
  const triggers = await waitingTriggers(config, ledger);
  const how = `\`--limit ${total}\` shows all${next === null ? "" : `, \`--after ${next}\` the next`}`;
  if (options.json === true) {
    printJson([...files, ...triggers]);
    noteCut(files.length, total, "files that wait", how, true);
    return 0;
  }
  for (const { state, reason } of triggers) print(`${styled("yellow", state)}  ${reason}`);
  if (reported === null) print(styled("dim", "no gateway responds; this is the state of its ledger\n"));
  else await printDrops(config);
  if (files.length === 0) print(triggers.length === 0 ? "nothing waits" : "no file waits");
  else printTable(["drop", "file", "state", "since", "waits for"], files.map(waitingRow));
  noteCut(files.length, total, "files that wait", how);
  return 0;
}

/** Triggers that wait: for a file that is late, or because a person paused them. They have no file to show. */
async function waitingTriggers(
  config: GatewayConfig,
  ledger: Ledger,
): Promise<readonly (Omit<WaitingFile, "state"> & { readonly state: "late" | "paused"; readonly trigger: string })[]> {
  const now = systemClock.now();
  const missing = await missingFiles(config.triggers, ledger, now, now);
  const late = missing.map((file) => ({
    ...{ trigger: file.trigger, state: "late" as const, since: file.due, reason: missingWords(file) },
    overdue: true,
  }));
  const pauses = await Pauses.read(ledger);
  const paused = pauses.list().flatMap((pause) => {
    if (pause.kind !== "trigger") return [];
    const reason = pauses.reason("trigger", pause.name) ?? "";
    return [{ trigger: pause.name, state: "paused" as const, since: pause.at, reason, overdue: false }];
  });
  const noFile = { drop: "", path: "", runId: null, eventsArrive: null };
  return [...late, ...paused].map((one) => ({ ...noFile, ...one }));
}

function waitingRow({ drop, path, state, since, reason, overdue, holdsUp }: WaitingFile): string[] {
  const lane =
    holdsUp === undefined ? "" : `; first of its lane since ${when(holdsUp.since)}, with ${holdsUp.behind} behind it`;
  return [drop, path, overdue ? styled("yellow", `${state}, overdue`) : state, when(since), `${reason}${lane}`];
}

/** Prints the drops that are paused, cannot be polled, or have no file-system events. */
async function printDrops(config: GatewayConfig): Promise<void> {
  for (const state of (await askGateway<readonly DropNote[]>(config, "drops")) ?? []) {
    const note = dropNote(state);
    if (note !== null) print(`${styled("yellow", "drop")}  ${state.drop}: ${note}`);
  }
}

type DropNote = Pick<DropState, "drop" | "paused" | "lastError" | "nextPollAt" | "eventsArrive">;

function dropNote({ paused, lastError, nextPollAt, eventsArrive }: DropNote): string | null {
  if (paused !== undefined && paused !== null) return paused;
  const next = nextPollAt === null ? "" : `, and is polled again at ${when(nextPollAt)}`;
  if (lastError !== null) return `cannot be polled: ${lastError.message}${next}`;
  return eventsArrive === false
    ? `file-system events do not arrive or are not used, so that files are seen by polling alone${next}`
    : null;
}

async function queryLedger(ledger: Ledger, config: GatewayConfig, query: WaitingQuery): Promise<WaitingPart> {
  const pauses = await Pauses.read(ledger);
  const places = config.drops.map(({ name, settle }) => ({
    drop: name,
    paused: pauses.reason("drop", name),
    waiting: [],
    eventsArrive: null,
    overdueAfterMs: settle.limit,
  }));
  const lanes = new WaitingLanes({
    ...{ ledger, clock: systemClock, afterMs: config.operations.laneAfter },
    waitReason: () => undefined,
    // No process knows the state of services, so that each lane is listed.
    isDown: () => false,
  });
  const nowMs = systemClock.now().epochMilliseconds;
  return waitingFiles(ledger, places, () => undefined, await lanes.all(), nowMs, query);
}

function runRow(run: Run, fleet: boolean): string[] {
  const { mapped, stored, rejected } = run.points;
  const storedPart = stored === mapped || run.state !== "confirmed" ? "" : ` (${stored} stored)`;
  const points = `${mapped}${storedPart}${rejected > 0 ? `, ${rejected} rejected` : ""}`;
  const state = shownState(run);
  return [
    run.id,
    when(run.createdAt),
    ...(fleet ? [run.node ?? ""] : []),
    run.drop,
    run.path,
    inTone(state),
    state === "duplicate" ? "" : points,
    run.reason?.message ?? attentionWords(run),
  ];
}

/** The first finding that needs attention, and how many more there are. */
function attentionWords({ findings }: Run): string {
  const [first, ...more] = findings.filter(({ attention }) => attention);
  if (first === undefined) return "";
  return `${findingWords(first)}${more.length === 0 ? "" : `, and ${more.length} more`}`;
}

/** In UTC without milliseconds, so that lines of different machines can be compared. */
function when(iso: string): string {
  return iso.replace(/\.\d+Z$/, "Z");
}

function statesOf(text: string | undefined): readonly ShownState[] | undefined {
  if (text === undefined) return undefined;
  return text.split(",").map((word) => {
    const state = SHOWN_STATES.find((known) => known === word.trim());
    if (state !== undefined) return state;
    throw invalidOption("--state", `${word} is not a state; the states are ${SHOWN_STATES.join(", ")}`);
  });
}
