/** `headgate quarantine`: lists files that need attention, with the reason and the next steps. */
import { basename } from "node:path/posix";
import type { RestingRun } from "../ledger/ledger.ts";
import type { Arrival, LedgerEvent } from "../model.ts";
import { actionsOf, currentPlace, OVERTAKEN, type RunAction } from "../operations/run-actions.ts";
import { UNMATCHED_CODE, UNMATCHED_HINT } from "../operations/unmatched-files.ts";
import { ATTENTION_STATES } from "../states.ts";
import { foundWords, placeWords } from "../support/place-words.ts";
import type { CommandFrame } from "./command.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { operatedConfigOption } from "./operated-config.ts";
import { print, printJson, reasonLines, styled, targetLines } from "./output.ts";
import { inTone } from "./run-state.ts";

interface QuarantineOptions {
  readonly config: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

const LOOKED_THROUGH = 1_000;

export function addQuarantine({ command, action }: CommandFrame): void {
  command("quarantine", ["headgate quarantine -c gateway.yaml", "headgate quarantine -c gateway.yaml --json"])
    .addOption(operatedConfigOption())
    .option("--all", "also files of which a newer version has arrived since")
    .option("--json", "as JSON")
    .action(action((options: QuarantineOptions) => showQuarantine(options)));
}

async function showQuarantine(options: QuarantineOptions): Promise<number> {
  const { ledger, config } = await openLedgerToRead(options.config);
  const templates = new Set(config.triggers.filter(({ provision }) => provision !== undefined).map(({ name }) => name));
  try {
    const resting = await ledger.restingIn(ATTENTION_STATES, LOOKED_THROUGH);
    const replaced = options.all === true ? null : await ledger.files.replaced(resting.map(({ run }) => run.id));
    const shown = resting.filter(({ run }) => replaced?.has(run.id) !== true);
    const cases: Case[] = [];
    for (const one of shown) {
      const events = await ledger.events(one.arrival.id);
      cases.push(caseOf(one, events, options.config, templates.has(one.run.binding.trigger)));
    }
    for (const { name } of config.drops)
      for (const arrival of await ledger.files.unmatched(name, LOOKED_THROUGH))
        cases.push(unmatchedCase(arrival, options.config));
    if (options.json === true) printJson(cases);
    else printCases(cases);
    return 0;
  } finally {
    await ledger.close();
  }
}

type Case = Omit<ReturnType<typeof caseOf>, "run" | "state" | "points"> & {
  /** Null for a file that no trigger claims. */
  readonly run: string | null;
  readonly state: RestingRun["run"]["state"] | "unmatched";
  readonly points: RestingRun["run"]["points"] | null;
};

function unmatchedCase({ drop, path, changedAt, reason }: Arrival, config: string): Case {
  return {
    ...{ run: null, drop, file: path, state: "unmatched", since: changedAt, isAt: path },
    ...{ code: UNMATCHED_CODE, reason: `no trigger claims it: ${reason}`, place: null, hint: UNMATCHED_HINT },
    ...{ rejectedByReason: [], targets: [], points: null },
    next: [
      `headgate trigger test ${shellWord(basename(path))} --drop ${drop} -c ${config}`,
      `headgate trace ${shellWord(path)} -c ${config}`,
    ],
  };
}

/** As one word of a command line. */
function shellWord(text: string): string {
  return /^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** `hasTemplate`: its trigger has a template for missing targets. */
function caseOf({ run, arrival }: RestingRun, events: readonly LedgerEvent[], config: string, hasTemplate: boolean) {
  const { reason, points } = run;
  return {
    run: run.id,
    drop: run.drop,
    file: run.path,
    state: run.state,
    since: run.changedAt,
    /** The place of the file. */
    isAt: currentPlace(arrival, events),
    code: reason?.code ?? null,
    reason: reason?.message ?? "",
    place: reason?.place ?? null,
    hint: reason?.hint ?? null,
    rejectedByReason: reason?.rejectedByReason ?? [],
    targets: reason?.targets ?? [],
    points,
    next: [
      `headgate trace ${run.id} -c ${config}`,
      ...actionsOf(run, hasTemplate).map((action) => commandOf(run, action, config)),
    ],
  };
}

const OPTIONS: Readonly<Partial<Record<RunAction, string>>> = { replay: " --dry-run" };

function commandOf({ id, reason }: RestingRun["run"], action: RunAction, config: string): string {
  const isOvertaken = action === "release" && reason?.code === OVERTAKEN;
  return `headgate ${action} ${id} -c ${config}${isOvertaken ? " --overwrite" : (OPTIONS[action] ?? "")}`;
}

function printCases(cases: readonly Case[]): void {
  if (cases.length === 0) {
    print("no file needs attention");
    return;
  }
  for (const one of cases) {
    const place = one.place ?? undefined;
    const state = one.state === "unmatched" ? styled("yellow", one.state) : inTone(one.state);
    print(`${state}  ${styled("bold", one.file)} at ${one.drop}, since ${one.since}`);
    print(`   why: ${placeWords(place)}${one.reason}${foundWords(one.reason, place)} [${one.code ?? "no code"}]`);
    for (const line of reasonLines(one.rejectedByReason)) print(`        ${line}`);
    for (const line of targetLines(one.targets)) print(`        ${line}`);
    if (one.hint !== null) print(`    do: ${one.hint}`);
    if (one.isAt !== one.file) print(`    at: ${one.isAt}`);
    for (const command of one.next) print(`  then: ${styled("dim", command)}`);
    print("");
  }
  print(`${cases.length} ${cases.length === 1 ? "file needs" : "files need"} attention`);
}
