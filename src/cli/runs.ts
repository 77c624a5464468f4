/** `headgate runs`: what was done, newest first; with `--waiting`, what each file waits for. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run, RunState } from "../model.ts";
import { ConfigError } from "../support/errors.ts";
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

const STATES: readonly RunState[] = [
  "claimed",
  "fetched",
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
    if (options.waiting === true) return await showWaiting(ledger, config.drops, options.json === true);
    const runs = await ledger.recentRuns(countOf(options.limit), statesOf(options.state));
    if (options.json === true) printJson(runs);
    else if (runs.length === 0) print("no runs yet");
    else printTable(["run", "when", "drop", "file", "state", "points", "reason"], runs.map(runRow));
    return 0;
  } finally {
    await ledger.close();
  }
}

async function showWaiting(
  ledger: Ledger,
  drops: readonly { readonly name: string }[],
  json: boolean,
): Promise<number> {
  const arrivals = [];
  for (const drop of drops) arrivals.push(...(await ledger.arrivalsIn(drop.name, ["settling", "unmatched"])));
  const runs = await ledger.runsIn([
    "claimed",
    "fetched",
    "mapping",
    "mapped",
    "delivering",
    "accepted",
    "held",
  ]);
  if (json) {
    printJson({ arrivals, runs });
    return 0;
  }
  if (arrivals.length + runs.length === 0) print("nothing waits");
  else {
    printTable(
      ["drop", "file", "state", "since", "waits for"],
      [
        ...arrivals.map((one) => [one.drop, one.path, one.state, when(one.changedAt), one.reason]),
        ...runs.map((run) => [
          run.drop,
          run.path,
          run.state,
          when(run.changedAt),
          run.reason?.message ?? "its turn",
        ]),
      ],
    );
  }
  return 0;
}

const COLOURS: Readonly<Partial<Record<RunState, Style>>> = {
  confirmed: "green",
  accepted: "green",
  quarantined: "red",
  discarded: "red",
  held: "yellow",
  cancelled: "dim",
};

function runRow(run: Run): string[] {
  const { mapped, stored, rejected } = run.points;
  const points = `${mapped}${stored === mapped || run.state !== "confirmed" ? "" : ` (${stored} stored)`}${rejected > 0 ? `, ${rejected} rejected` : ""}`;
  const colour = COLOURS[run.state];
  return [
    run.id,
    when(run.createdAt),
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
