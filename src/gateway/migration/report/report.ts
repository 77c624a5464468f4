/** The result of a migration, from its ledger and its spool: the facts of the report, as its JSON has them. */

import { compareNames } from "#core/text.ts";
import { targetOf } from "#mapping/segment/payloads.ts";
import { targetWords } from "#wire/target.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Batch, Run, RunState, TargetFacts } from "../../model.ts";
import { openKept } from "../../spool/kept-files.ts";
import { spoolPlaces } from "../../spool/paths.ts";
import { keptSegmentFiles, segmentFiles } from "../../spool/segment-files.ts";
import { readFacts } from "../../spool/target-index.ts";
import { type FileStanding, RUN_STATES, runStatesThat } from "../../states.ts";
import type { Finding } from "../plan/findings.ts";
import { Plan, type PlannedTarget } from "../plan/plan.ts";
import { faultOf } from "../plan/planner.ts";
import { shapesOf } from "../plan/series.ts";
import type { StructureReport } from "../structure/record.ts";
import type { Undone } from "../undo/record.ts";
import { allRuns } from "./delivered.ts";
import type { Reconciliation } from "./reconciliation.ts";

export interface ReportedFile {
  readonly drop: string;
  readonly path: string;
  readonly run: string;
  readonly state: RunState;
  readonly mapped: number;
  readonly accepted: number;
  readonly rejected: number;
  /** Refused rows of the file. */
  readonly refused: number;
  /** Why the file did not end well; null when it did. */
  readonly reason: string | null;
  /** Push calls; their operation ids begin with the run. */
  readonly operations: number;
}

/** Points of one target in one cell of the heat map. */
export interface CoverageRow {
  readonly target: string;
  readonly points: number;
  readonly from: string;
  readonly to: string;
  /** As many as there are cells. */
  readonly cells: readonly number[];
}

export interface MigrationReport {
  readonly id: string;
  readonly patterns: readonly string[];
  readonly mapper: string | null;
  readonly madeAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly files: readonly ReportedFile[];
  readonly points: { readonly mapped: number; readonly accepted: number; readonly rejected: number };
  /** Points accepted so far at a time, in the order of time. */
  readonly timeline: readonly { readonly at: string; readonly points: number }[];
  readonly coverage: {
    /** First day, and days of a cell. */
    readonly from: string;
    readonly cellDays: number;
    readonly cells: number;
    /** The first targets by name; `targets` counts all. */
    readonly rows: readonly CoverageRow[];
    readonly targets: number;
  } | null;
  readonly refusals: readonly { readonly reason: string; readonly rows: number; readonly files: number }[];
  /** By cause. */
  readonly findings: readonly Finding[];
  /** Patterns without a file, in words. */
  readonly empty: readonly string[];
  readonly reconciliation: Reconciliation | null;
  /** When the service was compared; null when it was not. */
  readonly reconciledAt: string | null;
  /** Sites, sources and variables that were created for it; absent when there are none. */
  readonly structure?: StructureReport;
  /** The undone deliveries, oldest first; the last may be in progress. */
  readonly undone?: readonly Undone[];
}

/** The number of file and target pairs that are compared; further ones are not. */
const SHARES_MAX = 100_000;

const NOTHING = { points: 0, rejected: 0, fault: null, targets: [] as readonly TargetFacts[], found: [] };

/** Of how many files all readings were accepted. */
export function deliveredFiles({ files }: Pick<MigrationReport, "files">): number {
  return files.filter(({ state }) => RUN_STATES[state].standing === "delivered").length;
}

/** The files by where they stand, each once; of containers the entries. */
export function standingsOf({ files, findings }: MigrationReport): Partial<Record<FileStanding, number>> {
  const counts: Partial<Record<FileStanding, number>> = {};
  const add = (standing: FileStanding, count: number) => {
    if (count > 0) counts[standing] = (counts[standing] ?? 0) + count;
  };
  for (const { state } of files) add(RUN_STATES[state].standing ?? "pending", 1);
  add("unmatched", findings.find(({ kind }) => kind === "unclaimed")?.files.length ?? 0);
  return counts;
}

const READ_AT_ONCE = 200;
/** Of a container its entries are reported. */
const REPORTED_STATES = runStatesThat(({ standing }) => standing !== null);

export type ReportFacts = Pick<
  MigrationReport,
  "id" | "patterns" | "mapper" | "madeAt" | "reconciliation" | "reconciledAt" | "empty"
>;

export type ReportLedger = Pick<Ledger, "runsIn" | "batches" | "rejectedRows" | "files">;

/** Of a file that was taken again the latest attempt counts, unless it was given up. */
async function* latestRuns(ledger: ReportLedger): AsyncGenerator<Run> {
  const latest = new Map<string, string>();
  const keyOf = ({ drop, path }: Run) => `${drop}\n${path}`;
  for await (const run of allRuns(ledger, REPORTED_STATES))
    if (run.state !== "cancelled" || !latest.has(keyOf(run))) latest.set(keyOf(run), run.id);
  for await (const run of allRuns(ledger, REPORTED_STATES)) if (latest.get(keyOf(run)) === run.id) yield run;
}

export async function makeReport(facts: ReportFacts, ledger: ReportLedger, spool: string): Promise<MigrationReport> {
  const files: ReportedFile[] = [];
  const refusals = new Map<string, { rows: number; files: number }>();
  const timeline = new Timeline();
  const coverage = new Coverage();
  const findings = new DeliveredFindings();
  const points = { mapped: 0, accepted: 0, rejected: 0 };
  for await (const run of latestRuns(ledger)) {
    const batches = await ledger.batches(run.id);
    const operations = timeline.take(batches);
    const compare = findings.take(run);
    await readTargets(run.id, batches, spool, (part) => {
      coverage.take(part);
      compare(part);
    });
    points.mapped += run.points.mapped;
    points.accepted += run.points.accepted;
    points.rejected += run.points.rejected;
    const refused = run.reason?.rejectedByReason ?? (await refusedRows(run, ledger));
    for (const { message, count } of refused) {
      const known = refusals.get(message) ?? { rows: 0, files: 0 };
      refusals.set(message, { rows: known.rows + count, files: known.files + 1 });
    }
    files.push({
      ...{ drop: run.drop, path: run.path, run: run.id, state: run.state, operations },
      ...{ mapped: run.points.mapped, accepted: run.points.accepted, rejected: run.points.rejected },
      refused: refused.reduce((sum, { count }) => sum + count, 0),
      reason: run.reason?.message ?? null,
    });
  }
  return {
    ...facts,
    files,
    points,
    ...timeline.edges(),
    timeline: timeline.steps(),
    coverage: coverage.rows(),
    findings: findings.found(await unclaimedPaths(ledger), facts.empty),
    refusals: [...refusals]
      .map(([reason, counts]) => ({ reason, ...counts }))
      .toSorted((one, other) => other.rows - one.rows),
  };
}

/** The targets of a run with the shapes of their readings, from wherever the spool has them. */
async function readTargets(
  run: string,
  batches: readonly Batch[],
  spool: string,
  take: (part: readonly PlannedTarget[]) => void,
): Promise<void> {
  const places = spoolPlaces(spool);
  const own = segmentFiles(places.segment(run));
  const { about, segment } = own.segment === null ? keptSegmentFiles(places.keptOf(run)) : own;
  if (about === null) return;
  // The parts of a split batch are in it.
  const whole = batches.filter(({ sequence }) => !sequence.includes("."));
  const shapes = segment === null ? null : await shapesOf((span) => openKept(segment, span), whole);
  await readFacts(about, READ_AT_ONCE, async (part) =>
    take(part.map((facts) => ({ ...facts, shape: shapes?.get(targetOf(facts.target)) }))),
  );
}

async function unclaimedPaths(ledger: ReportLedger): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let after: string | undefined; ; ) {
    const { files, next } = await ledger.files.list({ standing: "unmatched", limit: READ_AT_ONCE, after });
    paths.push(...files.map(({ arrival }) => arrival.path));
    if (next === null) return paths;
    after = next;
  }
}

/** Refused rows of a file that was delivered without them: by message, with `…` in place of quoted values. */
async function refusedRows(
  { id, points }: Run,
  ledger: ReportLedger,
): Promise<readonly { readonly message: string; readonly count: number }[]> {
  if (points.rejected === 0) return [];
  const rows = await ledger.rejectedRows(id);
  const counts = new Map<string, number>();
  for (const row of rows) {
    const message = row.message.replace(/"[^"]*"/g, '"…"');
    counts.set(message, (counts.get(message) ?? 0) + 1);
  }
  const beyond = points.rejected - rows.length;
  if (beyond > 0) counts.set("(beyond the rows of a file that are kept with their reason)", beyond);
  return [...counts].map(([message, count]) => ({ message, count }));
}

const STEPS_MAX = 200;

class Timeline {
  readonly #accepted: { readonly at: string; readonly points: number }[] = [];

  /** Returns the number of operations of the run. */
  take(batches: readonly Batch[]): number {
    for (const { state, points, acceptedAt } of batches)
      if (state === "accepted" && acceptedAt !== null) this.#accepted.push({ at: acceptedAt, points });
    return batches.filter(({ attempts }) => attempts > 0).length;
  }

  edges(): { readonly startedAt: string | null; readonly endedAt: string | null } {
    const times = this.#accepted.map(({ at }) => at).sort();
    return { startedAt: times[0] ?? null, endedAt: times.at(-1) ?? null };
  }

  steps(): MigrationReport["timeline"] {
    const ordered = this.#accepted.toSorted((one, other) => (one.at < other.at ? -1 : 1));
    const every = Math.max(1, Math.ceil(ordered.length / STEPS_MAX));
    let sum = 0;
    return ordered.flatMap(({ at, points }, index) => {
      sum += points;
      return index % every === 0 || index === ordered.length - 1 ? [{ at, points: sum }] : [];
    });
  }
}

const DAY_MS = 86_400_000;
const ROWS_MAX = 60;
const CELLS_MAX = 180;

/** Readings by target and day. Within one file they count as evenly spread over the days of its period. */
class Coverage {
  readonly #spans = new Map<string, { fromMs: number; toMs: number; points: number }[]>();

  take(part: readonly TargetFacts[]): void {
    for (const { target, fromMs, toMs, points } of part) {
      const words = targetWords(target);
      const spans = this.#spans.get(words) ?? [];
      spans.push({ fromMs, toMs, points });
      this.#spans.set(words, spans);
    }
  }

  rows(): MigrationReport["coverage"] {
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const spans of this.#spans.values())
      for (const { fromMs, toMs } of spans) {
        first = Math.min(first, fromMs);
        last = Math.max(last, toMs);
      }
    if (last < first) return null;
    const fromDay = Math.floor(first / DAY_MS);
    const days = Math.floor(last / DAY_MS) - fromDay + 1;
    const cellDays = Math.ceil(days / CELLS_MAX);
    const cells = Math.ceil(days / cellDays);
    const rows = [...this.#spans]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .slice(0, ROWS_MAX)
      .map(([target, spans]) => ({
        target,
        points: spans.reduce((sum, { points }) => sum + points, 0),
        from: new Date(Math.min(...spans.map(({ fromMs }) => fromMs))).toISOString(),
        to: new Date(Math.max(...spans.map(({ toMs }) => toMs))).toISOString(),
        cells: cellsOf(spans, { fromDay, cellDays, cells }),
      }));
    return {
      from: new Date(fromDay * DAY_MS).toISOString().slice(0, 10),
      ...{ cellDays, cells, rows, targets: this.#spans.size },
    };
  }
}

function cellsOf(
  spans: readonly { readonly fromMs: number; readonly toMs: number; readonly points: number }[],
  grid: { readonly fromDay: number; readonly cellDays: number; readonly cells: number },
): readonly number[] {
  const counts = new Array<number>(grid.cells).fill(0);
  for (const { fromMs, toMs, points } of spans) {
    const [first, last] = [Math.floor(fromMs / DAY_MS), Math.floor(toMs / DAY_MS)];
    const daily = points / (last - first + 1);
    for (let day = first; day <= last; day += 1) {
      const cell = Math.floor((day - grid.fromDay) / grid.cellDays);
      counts[cell] = (counts[cell] ?? 0) + daily;
    }
  }
  return counts.map((count) => Math.round(count));
}

type FileRun = Pick<Run, "drop" | "path" | "state" | "sha256" | "points" | "reason" | "findings">;

interface Delivered {
  readonly run: FileRun;
  readonly targets: PlannedTarget[];
}

/** Findings about the files that a migration took, as a plan would have found them. */
export class DeliveredFindings {
  /** By drop and path: the latest attempt of a file counts. */
  readonly #files = new Map<string, Delivered>();
  #shares = 0;

  take(run: FileRun): (targets: readonly PlannedTarget[]) => void {
    const file: Delivered = { run, targets: [] };
    this.#files.set(`${run.drop}\n${run.path}`, file);
    return (targets) => {
      const taken = targets.slice(0, Math.max(0, SHARES_MAX - this.#shares));
      file.targets.push(...taken);
      this.#shares += targets.length;
    };
  }

  /** `unclaimed`: paths that no trigger claims. `empty`: patterns without a file, in words. */
  found(unclaimed: readonly string[] = [], empty: readonly string[] = []): readonly Finding[] {
    const plan = new Plan();
    for (const words of empty) plan.note("pattern", words, [], null, words);
    for (const path of unclaimed.toSorted(compareNames))
      plan.add({ ...NOTHING, file: { path }, mapper: null, sha256: null });
    // In the order of a listing, as a plan takes them.
    const files = [...this.#files.values()].toSorted((one, other) => compareNames(one.run.path, other.run.path));
    for (const { run, targets } of files) addTo(plan, run, targets);
    // A file that is still to come may fill a gap.
    const isWhole = files.every(({ run }) => !RUN_STATES[run.state].isOpen);
    return plan.findings(isWhole && this.#shares <= SHARES_MAX);
  }
}

function addTo(plan: Plan, run: FileRun, targets: readonly PlannedTarget[]): void {
  const { path, state, sha256, points, reason, findings: found } = run;
  const { isDelivered, needsAttention } = RUN_STATES[state];
  const isRefused = needsAttention && !isDelivered && state !== "held" && state !== "discarded";
  const fault = isRefused && reason !== null ? faultOf(path, reason) : null;
  plan.add({ ...NOTHING, file: { path }, mapper: "", sha256, targets, points: points.mapped, fault, found });
  if (reason === null) return;
  const unfit = reason.targets ?? [];
  if (state === "held") for (const one of unfit) plan.addUnfit({ ...one, files: [path] });
  if ((state === "held" && unfit.length === 0) || state === "discarded") {
    const { cause, words } = faultOf(path, reason);
    plan.note(state === "held" ? "guard" : "discarded", cause, [path], null, words);
  }
}
