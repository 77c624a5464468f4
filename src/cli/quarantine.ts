/** `headgate quarantine`: lists files that need attention, with the reason and the next steps. */
import type { Ledger, RestingRun } from "../ledger/ledger.ts";
import { READINGS_LOST } from "../operations/state-of-work.ts";
import { ATTENTION_STATES } from "../states.ts";
import { placeWords } from "../support/place-words.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { operatedConfigOption } from "./operated-config.ts";
import { foundWords, print, printJson, reasonLines, styled, targetLines } from "./output.ts";
import { inTone } from "./run-state.ts";

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
    "Lists files that need attention (quarantined, held, discarded, unconfirmed): file, place, reason, and " +
      "the next steps.",
    ["headgate quarantine -c gateway.yaml", "headgate quarantine -c gateway.yaml --json"],
  )
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
    const shown: RestingRun[] = [];
    for (const one of resting) if (options.all === true || !(await isReplaced(one, ledger))) shown.push(one);
    const cases = shown.map((one) => caseOf(one, options.config, templates.has(one.run.binding.trigger)));
    if (options.json === true) printJson(cases);
    else printCases(cases);
    return 0;
  } finally {
    await ledger.close();
  }
}

/** A newer version of the file has arrived: its sender has resolved this one. */
async function isReplaced({ run, arrival }: RestingRun, ledger: Ledger): Promise<boolean> {
  // The sender does not know the outcome of an unconfirmed run, and the newer version may have other dates.
  if (arrival.parentId !== null || run.state === "unconfirmed" || run.reason?.code === READINGS_LOST) return false;
  const versions = await ledger.arrivalsAt(arrival.path, arrival.drop);
  return versions.some(({ id, state }) => id > arrival.id && state === "matched");
}

type Case = ReturnType<typeof caseOf>;

/** `hasTemplate`: its trigger has a template for missing targets. */
function caseOf({ run, arrival }: RestingRun, config: string, hasTemplate: boolean) {
  const { reason, points } = run;
  return {
    run: run.id,
    drop: run.drop,
    file: run.path,
    state: run.state,
    since: run.changedAt,
    /** The place of the file. */
    lies: currentPlace(run, arrival.goneAt),
    code: reason?.code ?? null,
    reason: reason?.message ?? "",
    place: reason?.place ?? null,
    hint: reason?.hint ?? null,
    rejectedByReason: reason?.rejectedByReason ?? [],
    targets: reason?.targets ?? [],
    points,
    next: [`headgate trace ${run.id} -c ${config}`, ...nextOf(run, config, hasTemplate)],
  };
}

/** Lost readings cannot be replayed; a person who has replaced them cancels the run. */
function nextOf(run: RestingRun["run"], config: string, hasTemplate: boolean): string[] {
  if (run.state === "held") return heldNext(run, config, hasTemplate);
  if (run.reason?.code === READINGS_LOST) return [`headgate cancel ${run.id} -c ${config}`];
  const replay = `headgate replay ${run.id} -c ${config} --dry-run`;
  return run.state === "unconfirmed" ? [`headgate recheck ${run.id} -c ${config}`, replay] : [replay];
}

/** A held run resumes automatically when the missing structure exists, unless only a person can decide. */
function heldNext({ id, reason }: RestingRun["run"], config: string, hasTemplate: boolean): string[] {
  const replay = `headgate replay ${id} -c ${config} --dry-run`;
  if (reason?.code === "HG-GUARD-007")
    return [replay, `headgate release ${id} -c ${config} --overwrite`, `headgate cancel ${id} -c ${config}`];
  const isMissing = (reason?.discards ?? 0) > 0;
  return [
    ...(isMissing && hasTemplate ? [`headgate provision ${id} -c ${config}`] : []),
    `headgate recheck ${id} -c ${config}`,
    `headgate release ${id} -c ${config}`,
    replay,
  ];
}

function currentPlace(run: RestingRun["run"], goneAt: string | null): string {
  if (run.finishPlan?.action === "archive" && run.finishedAt !== null) return run.finishPlan.to;
  if (run.finishPlan?.action === "delete" && run.finishedAt !== null) return "deleted";
  return goneAt === null ? run.path : "no longer at its drop";
}

function printCases(cases: readonly Case[]): void {
  if (cases.length === 0) {
    print("no file needs attention");
    return;
  }
  for (const one of cases) {
    const place = one.place ?? undefined;
    print(`${inTone(one.state)}  ${styled("bold", one.file)} at ${one.drop}, since ${one.since}`);
    print(`   why: ${placeWords(place)}${one.reason}${foundWords(one.reason, place)} [${one.code ?? "no code"}]`);
    for (const line of reasonLines(one.rejectedByReason)) print(`        ${line}`);
    for (const line of targetLines(one.targets)) print(`        ${line}`);
    if (one.hint !== null) print(`    do: ${one.hint}`);
    if (one.lies !== one.file) print(`    at: ${one.lies}`);
    for (const command of one.next) print(`  then: ${styled("dim", command)}`);
    print("");
  }
  print(`${cases.length} ${cases.length === 1 ? "file needs" : "files need"} attention`);
}
