/** The migrations of a configuration with their progress, read beside the processes that run them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import { commonText } from "#core/text.ts";
import type { Ledger, RestingRun } from "../ledger/ledger.ts";
import { isLedgerMissing, isLedgerOwned, openLedger } from "../ledger/open.ts";
import { ATTENTION_STATES } from "../states.ts";
import { actionsOf, readPause } from "./actions.ts";
import { planFacts, readKeptPlan } from "./plan/kept-plan.ts";
import { type KnownMigration, knownMigrations } from "./report/reports.ts";
import { migrationLedger } from "./request.ts";
import { Window } from "./run/window.ts";
import { pastUndos, runningUndo } from "./undo/record.ts";

const RECENT_MINUTES = 5;
const RESTING_MAX = 1_000;
const FINDINGS_MAX = 50;
const ACTIONS_MAX = 20;
const EVER = "1970-01-01T00:00:00.000Z";
const NEVER = "9999-01-01T00:00:00.000Z";

const NOTHING_YET = {
  files: {},
  points: { mapped: 0, accepted: 0, stored: 0, rejected: 0 },
  recent: { minutes: RECENT_MINUTES, files: 0, points: 0 },
  findings: [],
  isFindingsCut: false,
};

/** One whose ledger cannot be read has the reason in `fault`. */
export async function migrationsOf(spool: string, clock: Clock = systemClock) {
  const known = await knownMigrations(spool);
  return await Promise.all(known.map((one) => factsOf(one, clock)));
}

async function factsOf({ id, order, folder, limits = {} }: KnownMigration, clock: Clock) {
  const { patterns, mapper, service, rows, versionTag } = order;
  const { between = null, rate = null, pauseOnErrors = null, verify = false } = limits;
  const running = await runningUndo(folder);
  const undone = [...(await pastUndos(folder)), ...(running === null ? [] : [running])];
  const place = migrationLedger(folder);
  const hasLedger = !isLedgerMissing(place);
  const state = hasLedger ? (isLedgerOwned(place) ? "running" : "stopped") : undone.length > 0 ? "undone" : "planned";
  const isRunning = state === "running";
  const plan = await readKeptPlan(folder);
  const actions = await actionsOf(folder);
  const progress = hasLedger ? await progressOf(place, clock) : { ...NOTHING_YET, fault: null };
  return {
    ...{ id, patterns: [...patterns], mapper, service, rows, versionTag, folder },
    state: state as "planned" | "running" | "stopped" | "undone",
    ...progress,
    remainingSeconds: isRunning ? remainingOf(progress) : null,
    opensAt: isRunning && between !== null ? opensAt(between, clock) : null,
    limits: { between, rate, pauseOnErrors, verify },
    plan: plan === null ? null : planFacts(plan),
    pausing: isRunning ? await readPause(folder) : null,
    actions: actions.slice(-ACTIONS_MAX).reverse(),
    actionsCount: actions.length,
    undone: undone.map(({ begunAt, endedAt, by, points }) => ({ begunAt, endedAt, by, points })),
    hasReport: existsSync(join(folder, "report.html")),
  };
}

/** By the files of the last minutes; null where none came to rest. */
function remainingOf({ files, recent }: Pick<typeof NOTHING_YET, "files" | "recent">): number | null {
  const standing: Readonly<Record<string, number>> = files;
  const open = (standing["pending"] ?? 0) + (standing["settling"] ?? 0);
  return recent.files === 0 ? null : Math.round((open * recent.minutes * 60) / recent.files);
}

/** In words; null within the hours. */
function opensAt(between: string, clock: Clock): string | null {
  const window = Window.parse(between);
  const at = window.opensAt(clock.now());
  return at === null ? null : window.words(at);
}

async function progressOf(place: ReturnType<typeof migrationLedger>, clock: Clock) {
  try {
    const ledger = await openLedger(place, { clock, readOnly: true });
    try {
      return { ...(await readProgress(ledger, clock)), fault: null };
    } finally {
      await ledger.close();
    }
  } catch (thrown) {
    return { ...NOTHING_YET, fault: wordsOf(thrown) };
  }
}

async function readProgress(ledger: Ledger, clock: Clock) {
  const nowMs = clock.now().epochMilliseconds;
  const { points } = await ledger.tally(EVER);
  // Each file once, as it is there now: not its earlier versions.
  const { files } = await ledger.tally(NEVER);
  const recent = await ledger.runTotals({ fromMs: nowMs - RECENT_MINUTES * 60_000, untilMs: nowMs + 1 });
  const resting = await ledger.restingIn(ATTENTION_STATES, RESTING_MAX);
  const findings = findingsOf(resting);
  return {
    ...{ files, points },
    recent: { minutes: RECENT_MINUTES, files: recent.files, points: recent.points },
    findings: findings.slice(0, FINDINGS_MAX),
    isFindingsCut: resting.length === RESTING_MAX || findings.length > FINDINGS_MAX,
  };
}

/** By cause, the one of most files first. */
function findingsOf(resting: readonly RestingRun[]) {
  const causeOf = ({ run: { state, reason } }: RestingRun) =>
    JSON.stringify([state, reason?.code ?? null, commonText(reason?.message ?? "")]);
  const groups = [...Map.groupBy(resting, causeOf).values()].flatMap((members) => {
    const [first] = members;
    if (first === undefined) return [];
    const { state, reason, path } = first.run;
    const isSame = members.every(({ run }) => run.reason?.message === reason?.message);
    const what = isSame ? (reason?.message ?? "") : commonText(reason?.message ?? "");
    const more = { code: reason?.code ?? null, hint: reason?.hint ?? null, files: members.length, example: path };
    return [{ state, what, ...more }];
  });
  return groups.sort((a, b) => b.files - a.files);
}
