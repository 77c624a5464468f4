/** `headgate quarantine`: what rests and needs a person, why, and how to go on. */
import type { Ledger, RestingRun } from "../ledger/ledger.ts";
import { NEEDS_A_PERSON } from "../operations/state-of-work.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { openLedgerToRead } from "./ledger-view.ts";
import { foundWords, placeWords, print, printJson, reasonLines, styled, targetLines } from "./output.ts";

interface QuarantineOptions {
  readonly config: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

const LOOKED_THROUGH = 1_000;

export function addQuarantine({ program, action }: CommandFrame): void {
  addCommand(
    program,
    "quarantine",
    "What rests and needs a person (quarantined, held, discarded): file, place, reason, and how to go on.",
    ["headgate quarantine -c gateway.yaml", "headgate quarantine -c gateway.yaml --json"],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--all", "also files of which a newer version has come since")
    .option("--json", "as JSON")
    .action(action((options: QuarantineOptions) => showQuarantine(options)));
}

async function showQuarantine(options: QuarantineOptions): Promise<number> {
  const { ledger } = await openLedgerToRead(options.config);
  try {
    const resting = await ledger.restingIn(NEEDS_A_PERSON, LOOKED_THROUGH);
    const shown: RestingRun[] = [];
    for (const one of resting) if (options.all === true || !(await isReplaced(one, ledger))) shown.push(one);
    const cases = shown.map((one) => caseOf(one, options.config));
    if (options.json === true) printJson(cases);
    else printCases(cases);
    return 0;
  } finally {
    await ledger.close();
  }
}

/** A newer version of the file has come: whoever sent it has seen to this one. */
async function isReplaced({ arrival }: RestingRun, ledger: Ledger): Promise<boolean> {
  if (arrival.parentId !== null) return false;
  const versions = await ledger.arrivalsAt(arrival.path, arrival.drop);
  return versions.some(({ id, state }) => id > arrival.id && state === "matched");
}

type Case = ReturnType<typeof caseOf>;

function caseOf({ run, arrival }: RestingRun, config: string) {
  const { reason, points } = run;
  return {
    run: run.id,
    drop: run.drop,
    file: run.path,
    state: run.state,
    since: run.changedAt,
    /** Where the file is. */
    lies: liesAt(run, arrival.goneAt),
    code: reason?.code ?? null,
    reason: reason?.message ?? "",
    place: reason?.place ?? null,
    hint: reason?.hint ?? null,
    rejectedByReason: reason?.rejectedByReason ?? [],
    targets: reason?.targets ?? [],
    points,
    next: [
      `headgate trace ${run.id} -c ${config}`,
      ...(run.state === "held"
        ? heldNext(run, config)
        : [`headgate replay ${run.id} -c ${config} --dry-run`]),
    ],
  };
}

/** A held run goes on by itself when what it waits for is there, unless only a person can decide. */
function heldNext({ id, reason }: RestingRun["run"], config: string): string[] {
  const replay = `headgate replay ${id} -c ${config} --dry-run`;
  if (reason?.code === "HG-GUARD-007")
    return [replay, `headgate release ${id} -c ${config} --overwrite`, `headgate cancel ${id} -c ${config}`];
  return [`headgate recheck ${id} -c ${config}`, `headgate release ${id} -c ${config}`, replay];
}

function liesAt(run: RestingRun["run"], goneAt: string | null): string {
  if (run.finishPlan?.action === "archive" && run.finishedAt !== null) return run.finishPlan.to;
  if (run.finishPlan?.action === "delete" && run.finishedAt !== null) return "deleted";
  return goneAt === null ? run.path : "gone from its drop";
}

function printCases(cases: readonly Case[]): void {
  if (cases.length === 0) {
    print("nothing needs a person");
    return;
  }
  for (const one of cases) {
    const place = one.place ?? undefined;
    print(
      `${styled(one.state === "held" ? "yellow" : "red", one.state)}  ${styled("bold", one.file)} at ${one.drop}, since ${one.since}`,
    );
    print(
      `   why: ${placeWords(place)}${one.reason}${foundWords(one.reason, place)} [${one.code ?? "no code"}]`,
    );
    for (const line of reasonLines(one.rejectedByReason)) print(`        ${line}`);
    for (const line of targetLines(one.targets)) print(`        ${line}`);
    if (one.hint !== null) print(`    do: ${one.hint}`);
    if (one.lies !== one.file) print(` lies: ${one.lies}`);
    for (const command of one.next) print(`  then: ${styled("dim", command)}`);
    print("");
  }
  print(`${cases.length} ${cases.length === 1 ? "file needs" : "files need"} a person`);
}
