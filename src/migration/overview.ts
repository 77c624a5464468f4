/** The migrations of a configuration with their progress, read beside the processes that run them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Ledger, RestingRun } from "../ledger/ledger.ts";
import { isLedgerMissing, isLedgerOwned, openLedger } from "../ledger/open.ts";
import { ATTENTION_STATES } from "../states.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { commonText } from "../support/common-text.ts";
import { wordsOf } from "../support/errors.ts";
import { type KnownMigration, knownMigrations } from "./report/reports.ts";
import { migrationLedger } from "./request.ts";
import { pastUndos, runningUndo } from "./undo/record.ts";

const RECENT_MINUTES = 5;
const RESTING_MAX = 1_000;
const FINDINGS_MAX = 50;
const EVER = "1970-01-01T00:00:00.000Z";

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

async function factsOf({ id, order, folder }: KnownMigration, clock: Clock) {
  const { patterns, mapper, service, rows, versionTag } = order;
  const running = await runningUndo(folder);
  const undone = [...(await pastUndos(folder)), ...(running === null ? [] : [running])];
  const place = migrationLedger(folder);
  const hasLedger = !isLedgerMissing(place);
  const state = hasLedger ? (isLedgerOwned(place) ? "running" : "stopped") : undone.length > 0 ? "undone" : "planned";
  return {
    ...{ id, patterns: [...patterns], mapper, service, rows, versionTag, folder },
    state: state as "planned" | "running" | "stopped" | "undone",
    ...(hasLedger ? await progressOf(place, clock) : { ...NOTHING_YET, fault: null }),
    undone: undone.map(({ begunAt, endedAt, by, points }) => ({ begunAt, endedAt, by, points })),
    hasReport: existsSync(join(folder, "report.html")),
  };
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
  const { files, points } = await ledger.tally(EVER);
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
