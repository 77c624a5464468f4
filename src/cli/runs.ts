/** `headgate runs`: what was done, newest first; with `--waiting`, what each file waits for. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { ledgerFile } from "../ledger/options.ts";
import type { Run } from "../model.ts";
import { endpointFilePath, readEndpointFile } from "../operations/endpoint-file.ts";
import { missingWords } from "../operations/late-files.ts";
import { type DropState, type WaitingFile, waitingFiles } from "../operations/state-of-work.ts";
import { WaitingLanes } from "../operations/waiting-lanes.ts";
import { Pauses } from "../runs/pauses.ts";
import { systemClock } from "../support/clock.ts";
import { ConfigError } from "../support/errors.ts";
import { missingFiles } from "../triggers/expectation.ts";
import { addCommand, type CommandFrame, configOption } from "./command.ts";
import { openLedgerToRead } from "./ledger-view.ts";
import { print, printJson, printTable, styled } from "./output.ts";
import { inTone, SHOWN_STATES, type ShownState, shownState } from "./run-state.ts";

interface RunsOptions {
  readonly config: string;
  readonly limit: string;
  readonly state?: string;
  readonly waiting?: boolean;
  readonly json?: boolean;
}

/** How long the daemon may take to answer. */
const DAEMON_MS = 2_000;

/** Of runs given up that are looked through for duplicates. */
const CANCELLED_MAX = 10_000;

export function addRuns({ program, action }: CommandFrame): void {
  addCommand(program, "runs", "What was done, newest first.", [
    "headgate runs -c gateway.yaml --state quarantined",
    "headgate runs -c gateway.yaml --waiting",
  ])
    .addOption(configOption())
    .option("-n, --limit <count>", "how many", "20")
    .option("--state <states>", "only these states, separated by commas")
    .option("--waiting", "files and runs on their way, and what each waits for")
    .option("--json", "as JSON")
    .action(action((options: RunsOptions) => showRuns(options)));
}

async function showRuns(options: RunsOptions): Promise<number> {
  const { ledger, config } = await openLedgerToRead(options.config);
  try {
    if (options.waiting === true) return await showWaiting(ledger, config, options.json === true);
    if (options.json !== true) await printMissing(config, ledger);
    const runs = await recentRuns(ledger, countOf(options.limit), statesOf(options.state));
    if (options.json === true) {
      printJson(runs);
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
    return 0;
  } finally {
    await ledger.close();
  }
}

/** The ledger knows duplicates as runs that were given up, for the reason that tells them apart. */
async function recentRuns(
  ledger: Ledger,
  count: number,
  states: readonly ShownState[] | undefined,
): Promise<readonly Run[]> {
  if (states === undefined) return await ledger.recentRuns(count);
  const isGivenUp = states.includes("duplicate") || states.includes("cancelled");
  const asked = new Set(states.map((state) => (state === "duplicate" ? "cancelled" : state)));
  const runs = await ledger.recentRuns(isGivenUp ? Math.max(count, CANCELLED_MAX) : count, [...asked]);
  return runs.filter((run) => states.includes(shownState(run))).slice(0, count);
}

/** Who shares the ledger, where many do. */
async function printNodes(ledger: Ledger): Promise<void> {
  for (const { node, alive, since, heardOf, drops, runs } of await ledger.fleet.nodes()) {
    const polls = drops.length === 0 ? "polls no drop" : `polls ${drops.join(", ")}`;
    if (alive)
      print(`${styled("green", "node")}  ${node}: up since ${when(since)}, ${polls}, works on ${runs} runs`);
    else print(`${styled("yellow", "node")}  ${node}: was last heard of ${when(heardOf)}`);
  }
}

/** Files that triggers expect and that have not come. */
async function printMissing(config: GatewayConfig, ledger: Ledger): Promise<void> {
  const now = systemClock.now();
  for (const file of await missingFiles(config.triggers, ledger, now, now))
    print(`${styled("yellow", "late")}  ${missingWords(file)}`);
}

async function showWaiting(ledger: Ledger, config: GatewayConfig, json: boolean): Promise<number> {
  const told = await askDaemon<readonly WaitingFile[]>(config, "waiting");
  const files = told ?? (await askLedger(ledger, config));
  const triggers = await waitingTriggers(config, ledger);
  if (json) {
    printJson([...files, ...triggers]);
    return 0;
  }
  for (const { state, reason } of triggers) print(`${styled("yellow", state)}  ${reason}`);
  if (told === null) print(styled("dim", "no gateway answers now; this is what its ledger tells\n"));
  else await printDrops(config);
  if (files.length === 0) print(triggers.length === 0 ? "nothing waits" : "no file waits");
  else printTable(["drop", "file", "state", "since", "waits for"], files.map(waitingRow));
  return 0;
}

/** Triggers that wait: for a file that is late, or for a person who paused them. They have no file to show. */
async function waitingTriggers(
  config: GatewayConfig,
  ledger: Ledger,
): Promise<
  readonly (Omit<WaitingFile, "state"> & { readonly state: "late" | "paused"; readonly trigger: string })[]
> {
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
    holdsUp === undefined
      ? ""
      : `; first of its lane since ${when(holdsUp.since)}, with ${holdsUp.behind} behind it`;
  return [
    drop,
    path,
    overdue ? styled("yellow", `${state}, overdue`) : state,
    when(since),
    `${reason}${lane}`,
  ];
}

/** What holds up all files of a drop. */
async function printDrops(config: GatewayConfig): Promise<void> {
  for (const state of (await askDaemon<readonly DropNote[]>(config, "drops")) ?? []) {
    const note = dropNote(state);
    if (note !== null) print(`${styled("yellow", "drop")}  ${state.drop}: ${note}`);
  }
}

type DropNote = Pick<DropState, "drop" | "paused" | "lastError" | "nextPollAt" | "eventsArrive">;

function dropNote({ paused, lastError, nextPollAt, eventsArrive }: DropNote): string | null {
  if (paused !== undefined && paused !== null) return paused;
  const next = nextPollAt === null ? "" : `, and is looked at again at ${when(nextPollAt)}`;
  if (lastError !== null) return `cannot be looked through: ${lastError.message}${next}`;
  return eventsArrive === false
    ? `file-system events do not arrive or are not used, so that files are seen by polling alone${next}`
    : null;
}

/** The running daemon knows how far a file has settled; null when none answers. */
async function askDaemon<T>(config: GatewayConfig, what: "waiting" | "drops"): Promise<T | null> {
  const sign = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  if (sign === null) return null;
  try {
    const answer = await fetch(`${sign.url}/operations/${what}`, {
      headers: { authorization: `Bearer ${sign.secret}` },
      redirect: "error",
      signal: AbortSignal.timeout(DAEMON_MS),
    });
    return answer.ok ? ((await answer.json()) as T) : null;
  } catch {
    // No daemon runs: the ledger answers instead.
    return null;
  }
}

async function askLedger(ledger: Ledger, config: GatewayConfig): Promise<readonly WaitingFile[]> {
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
    // Nobody who runs knows, so that each lane is told.
    isDown: () => false,
  });
  const nowMs = systemClock.now().epochMilliseconds;
  return waitingFiles(ledger, places, () => undefined, await lanes.all(), nowMs);
}

function runRow(run: Run, fleet: boolean): string[] {
  const { mapped, stored, rejected } = run.points;
  const points = `${mapped}${stored === mapped || run.state !== "confirmed" ? "" : ` (${stored} stored)`}${rejected > 0 ? `, ${rejected} rejected` : ""}`;
  const state = shownState(run);
  return [
    run.id,
    when(run.createdAt),
    ...(fleet ? [run.node ?? ""] : []),
    run.drop,
    run.path,
    inTone(state),
    state === "duplicate" ? "" : points,
    run.reason?.message ?? "",
  ];
}

/** Without the milliseconds and in UTC, so that lines of different machines compare. */
function when(iso: string): string {
  return iso.replace(/\.\d+Z$/, "Z");
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw new ConfigError("HG-CLI-001", {
    operation: "read option",
    subject: "--limit",
    message: `${text} is not a count`,
  });
}

function statesOf(text: string | undefined): readonly ShownState[] | undefined {
  if (text === undefined) return undefined;
  return text.split(",").map((word) => {
    const state = SHOWN_STATES.find((known) => known === word.trim());
    if (state !== undefined) return state;
    throw new ConfigError("HG-CLI-001", {
      operation: "read option",
      subject: "--state",
      message: `${word} is no state; there are ${SHOWN_STATES.join(", ")}`,
    });
  });
}
