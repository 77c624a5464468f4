/** `headgate quarantine`: lists files that need attention, with the reason and the next steps. */
import { basename } from "node:path/posix";
import { foundWords, placeWords } from "#core/text.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { RestingRun } from "#gateway/ledger/ledger.ts";
import type { Arrival, LedgerEvent, RunState } from "#gateway/model.ts";
import type { AttentionGroup, AttentionItem } from "#gateway/operations/api/attention.ts";
import type { AttentionKind } from "#gateway/operations/attention-kinds.ts";
import { actionsOf, currentPlace, OVERTAKEN, type RunAction } from "#gateway/operations/run-actions.ts";
import { countUnmatched, UNMATCHED_CODE, UNMATCHED_HINT } from "#gateway/operations/state-of-work.ts";
import { ATTENTION_STATES } from "#gateway/states.ts";
import { askGateway } from "./ask-gateway.ts";
import type { CommandFrame } from "./command.ts";
import { limitOption, openLedgerToRead } from "./ledger/ledger-view.ts";
import { operatedConfigOption } from "./operated-config.ts";
import { inTone, print, printJson, reasonLines, styled, targetLines } from "./output.ts";

interface QuarantineOptions {
  readonly config: string;
  readonly all?: boolean;
  readonly limit: string;
  readonly json?: boolean;
}

interface Attention {
  readonly groups: readonly AttentionGroup[];
}

const LISTED = 1_000;
/** Matters of one cause, not about files, in one query. */
const READ_AT_ONCE = 500;

export function addQuarantine({ command, action }: CommandFrame): void {
  command("quarantine", ["headgate quarantine -c gateway.yaml", "headgate quarantine -c gateway.yaml --json"])
    .addOption(operatedConfigOption())
    .option("--all", "also files of which a newer version has arrived since")
    .option("-n, --limit <count>", "how many runs, and how many unmatched files of each drop", String(LISTED))
    .option("--json", "as JSON")
    .action(action((options: QuarantineOptions) => showQuarantine(options)));
}

async function showQuarantine(options: QuarantineOptions): Promise<number> {
  const { ledger, config } = await openLedgerToRead(options.config);
  const templates = new Set(config.triggers.filter(({ provision }) => provision !== undefined).map(({ name }) => name));
  try {
    const limit = limitOption(options.limit);
    const drops = config.drops.map(({ name }) => name);
    const resting = await ledger.restingIn(ATTENTION_STATES, limit);
    const replaced = options.all === true ? null : await ledger.files.replaced(resting.map(({ run }) => run.id));
    const shown = resting.filter(({ run }) => replaced?.has(run.id) !== true);
    const cases: Case[] = [];
    for (const one of shown) {
      const events = await ledger.events(one.arrival.id);
      cases.push(caseOf(one, events, options.config, templates.has(one.run.binding.trigger)));
    }
    for (const name of drops)
      for (const arrival of await ledger.files.unmatched(name, limit))
        cases.push(unmatchedCase(arrival, options.config));
    cases.push(...(await otherCases(config)));
    if (options.json === true) printJson(cases);
    else printCases(cases);
    const isCut = resting.length === limit || cases.filter(({ state }) => state === "unmatched").length >= limit;
    const to = options.json === true ? process.stderr : process.stdout;
    const runs = await ledger.countRuns(ATTENTION_STATES);
    const unmatched = await countUnmatched(ledger, drops);
    const all = `${runs} runs that need attention or did, and ${unmatched} files that no trigger claims`;
    if (isCut) to.write(`there are more, of ${all}; \`--limit ${runs + unmatched}\` shows all\n`);
    return 0;
  } finally {
    await ledger.close();
  }
}

type Case = Omit<ReturnType<typeof caseOf>, "run" | "state" | "points"> & {
  /** Null for a file that no trigger claims. */
  readonly run: string | null;
  readonly state: AttentionKind;
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

/** The running gateway lists what needs attention beside files: drops, services, the configuration. */
async function otherCases(config: GatewayConfig): Promise<readonly Case[]> {
  const attention = await askGateway<Attention>(config, "attention");
  const cases: Case[] = [];
  for (const { key, kind } of attention?.groups ?? []) {
    if (kind === "unmatched" || (ATTENTION_STATES as readonly string[]).includes(kind)) continue;
    for (const { drop, path, since, currentPlace, code, reason, hint } of await membersOf(key, config))
      cases.push({
        ...{ run: null, drop: drop ?? "", file: path ?? "", state: kind, since: since ?? "", isAt: currentPlace ?? "" },
        ...{ code, reason, place: null, hint, rejectedByReason: [], targets: [], points: null, next: [] },
      });
  }
  return cases;
}

/** All matters of one cause. */
async function membersOf(key: string, config: GatewayConfig): Promise<readonly AttentionItem[]> {
  type Part = { readonly items: readonly AttentionItem[]; readonly next: string | null };
  const items: AttentionItem[] = [];
  for (let next: string | null = ""; next !== null; ) {
    const after: string = next === "" ? "" : `&after=${encodeURIComponent(next)}`;
    const part: Part | null = await askGateway(config, `attention/items?group=${key}&limit=${READ_AT_ONCE}${after}`);
    items.push(...(part?.items ?? []));
    next = part?.next ?? null;
  }
  return items;
}

/** Quotes a text as one word of a command line. */
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
    state: run.state as AttentionKind,
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

function sinceWords({ since }: Case): string {
  return since === "" ? "" : `, since ${since}`;
}

function printCases(cases: readonly Case[]): void {
  if (cases.length === 0) {
    print("nothing needs attention");
    return;
  }
  for (const one of cases) {
    const place = one.place ?? undefined;
    const state = one.run === null ? styled("yellow", one.state) : inTone(one.state as RunState);
    const where = one.drop === "" || one.file === "" ? one.drop : `at ${one.drop}`;
    print(`${state}  ${[styled("bold", one.file), where].filter((part) => part !== "").join(" ")}${sinceWords(one)}`);
    print(`   why: ${placeWords(place)}${one.reason}${foundWords(one.reason, place)} [${one.code ?? "no code"}]`);
    for (const line of reasonLines(one.rejectedByReason)) print(`        ${line}`);
    for (const line of targetLines(one.targets)) print(`        ${line}`);
    if (one.hint !== null) print(`    do: ${one.hint}`);
    if (one.isAt !== one.file && one.isAt !== "") print(`    at: ${one.isAt}`);
    for (const command of one.next) print(`  then: ${styled("dim", command)}`);
    print("");
  }
  print(`${cases.length} ${cases.length === 1 ? "matter needs" : "matters need"} attention`);
}
