/** `headgate runs`: what was done, newest first; with `--waiting`, what each file waits for. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Run, RunState } from "../model.ts";
import { doorSignPath, readSign } from "../operations/door.ts";
import { missingWords } from "../operations/late-files.ts";
import { type DropState, type WaitingFile, waitingFiles } from "../operations/state-of-work.ts";
import { Pauses } from "../runs/pauses.ts";
import { systemClock } from "../support/clock.ts";
import { ConfigError } from "../support/errors.ts";
import { missingFiles } from "../triggers/expectation.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { openLedgerToRead } from "./ledger-view.ts";
import { print, printJson, printTable, type Style, styled } from "./output.ts";

interface RunsOptions {
  readonly config: string;
  readonly limit: string;
  readonly state?: string;
  readonly waiting?: boolean;
  readonly json?: boolean;
}

/** How long the daemon may take to answer. */
const DAEMON_MS = 2_000;

const STATES: readonly RunState[] = [
  "claimed",
  "fetched",
  "opened",
  "mapping",
  "mapped",
  "delivering",
  "accepted",
  "confirmed",
  "empty",
  "held",
  "discarded",
  "quarantined",
  "cancelled",
];

export function addRuns({ program, action }: CommandFrame): void {
  addCommand(program, "runs", "What was done, newest first.", [
    "headgate runs -c gateway.yaml --state quarantined",
    "headgate runs -c gateway.yaml --waiting",
  ])
    .requiredOption("-c, --config <file>", "configuration of the gateway")
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
    const runs = await ledger.recentRuns(countOf(options.limit), statesOf(options.state));
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
  if (json) {
    printJson(files);
    return 0;
  }
  await printMissing(config, ledger);
  if (told === null) print(styled("dim", "no gateway answers now; this is what its ledger tells\n"));
  else await printDrops(config);
  if (files.length === 0) print("nothing waits");
  else printTable(["drop", "file", "state", "since", "waits for"], files.map(waitingRow));
  return 0;
}

function waitingRow({ drop, path, state, since, reason, overdue }: WaitingFile): string[] {
  return [drop, path, overdue ? styled("yellow", `${state}, overdue`) : state, when(since), reason];
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
    ? `events do not arrive, so that files are seen by polling alone${next}`
    : null;
}

/** The running daemon knows how far a file has settled; null when none answers. */
async function askDaemon<T>(config: GatewayConfig, what: "waiting" | "drops"): Promise<T | null> {
  const sign = await readSign(doorSignPath(config));
  const base = sign?.url ?? `http://${config.operations.listen}`;
  try {
    const answer = await fetch(`${base}/operations/${what}`, { signal: AbortSignal.timeout(DAEMON_MS) });
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
  return waitingFiles(ledger, places, () => undefined, systemClock.now().epochMilliseconds);
}

const COLOURS: Readonly<Partial<Record<RunState, Style>>> = {
  confirmed: "green",
  accepted: "green",
  quarantined: "red",
  discarded: "red",
  held: "yellow",
  cancelled: "dim",
};

function runRow(run: Run, fleet: boolean): string[] {
  const { mapped, stored, rejected } = run.points;
  const points = `${mapped}${stored === mapped || run.state !== "confirmed" ? "" : ` (${stored} stored)`}${rejected > 0 ? `, ${rejected} rejected` : ""}`;
  const colour = COLOURS[run.state];
  return [
    run.id,
    when(run.createdAt),
    ...(fleet ? [run.node ?? ""] : []),
    run.drop,
    run.path,
    colour === undefined ? run.state : styled(colour, run.state),
    points,
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

function statesOf(text: string | undefined): readonly RunState[] | undefined {
  if (text === undefined) return undefined;
  return text.split(",").map((word) => {
    const state = STATES.find((known) => known === word.trim());
    if (state !== undefined) return state;
    throw new ConfigError("HG-CLI-001", {
      operation: "read option",
      subject: "--state",
      message: `${word} is no state; there are ${STATES.join(", ")}`,
    });
  });
}
