/**
 * `migrate --dry-run`: maps the files, or a sample of them, compares their targets with the service, and sends
 * nothing.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { InvariantError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { grouped } from "#core/text.ts";
import { openMapping } from "#mapping/workers/open.ts";
import { targetWords } from "#wire/target.ts";
import type { GatewayConfig } from "../../config.ts";
import type { DeliveryJournal } from "../../delivery/delivery.ts";
import { createDelivery } from "../../delivery/service-delivery.ts";
import { createDrop } from "../../drops/create.ts";
import type { Drop } from "../../drops/drop.ts";
import type { TargetFacts, TargetFinding } from "../../model.ts";
import { type Claim, Claims, groupOf, mapperOf } from "./claims.ts";
import { type Estimate, estimate, type FileMeasure, type Measured, type Sending, sumOf } from "./estimate.ts";
import type { Finding } from "./findings.ts";
import type { HistoryFile } from "./history-files.ts";
import { Plan, type PlannedFile } from "./plan.ts";
import { Planner, plannedOf } from "./planner.ts";
import { chooseSample, type SampleLimits } from "./sample.ts";

/** The files that were read. Of the others only name, size and mapper are known. */
interface PlanSample {
  readonly files: number;
  readonly bytes: number;
  readonly unreadFiles: number;
  readonly unreadBytes: number;
  /** The facts that hold only for the files read, in words; null when all were read. */
  readonly words: string | null;
}

/** A target that the service would not store as it is, with the files read that hold it, and its period in them. */
export interface Unfit {
  readonly what: TargetFinding["what"];
  readonly target: string;
  readonly words: string;
  readonly files: readonly string[];
  readonly from: string;
  readonly to: string;
}

export interface PlanReport {
  readonly files: number;
  readonly bytes: number;
  /** By mapper; `none` counts files that no trigger claims, and the entries of `(archives)` are claimed. */
  readonly mappers: Readonly<Record<string, number>>;
  readonly sample: PlanSample;
  /** Of all files. */
  readonly estimate: Estimate;
  /** Of the files read, as are rejected rows, targets, period and findings. */
  readonly points: number;
  readonly rejected: number;
  readonly targets: number;
  /** In words; null when the service could not be asked. */
  readonly unfit: readonly Unfit[] | null;
  readonly unaskedBecause: string | null;
  readonly period: { readonly from: string; readonly to: string } | null;
  /** Measured while the files were mapped. */
  readonly mappingSeconds: number;
  /** By cause; what the service would not store as it is among them. */
  readonly findings: readonly Finding[];
}

export interface PlanRequest {
  /** Patterns without a match, in words. */
  readonly empty: readonly string[];
  readonly files: readonly HistoryFile[];
  readonly limits: SampleLimits;
  readonly sending: Sending;
  readonly tick: (done: number, of: number) => void;
  /** Called with the targets that the account lacks; returns those that will exist by then, which are no findings. */
  readonly onMissing: (missing: readonly MissingTarget[]) => Promise<ReadonlySet<string>>;
}

/** With the first file read that holds it. */
export interface MissingTarget {
  readonly facts: TargetFacts;
  readonly file: string;
}

/** A file, and its claim. */
interface Claimed {
  readonly file: HistoryFile;
  readonly claim: Claim;
}

export async function makePlan(
  config: GatewayConfig,
  { empty, files, limits, sending, tick, onMissing }: PlanRequest,
  signal: AbortSignal,
): Promise<PlanReport> {
  const claims = new Claims(config);
  const all: readonly Claimed[] = files.map((file) => ({ file, claim: claims.of(file) }));
  const claimed = all.filter(({ claim }) => claim.by !== "none");
  const listed = claimed.map(({ file, claim }) => ({ size: file.size, group: groupOf(claim) }));
  const chosen = chooseSample(listed, limits);
  const plan = new Plan();
  for (const { file, claim } of all) if (claim.by === "none") plan.add(plannedOf({ file, sha256: null }, null));
  const measured = await readFiles(
    { config, claims, chosen: chosen.flatMap((index) => claimed[index] ?? []) },
    (planned) => plan.add(planned),
    tick,
    signal,
  );
  for (const words of empty) plan.note("pattern", words, [], null, words);
  const isWhole = measured.files.length === claimed.length;
  const asked = await queryService(config, plan, onMissing, signal);
  const { period } = plan;
  return {
    files: files.length,
    bytes: sumOf(files, ({ size }) => size),
    mappers: mappersOf(all),
    sample: sampleOf(
      claimed.map(({ file }) => file),
      measured.files,
      signal.aborted ? "stopped: " : "",
    ),
    estimate: estimate(listed, measured, sending),
    ...plan.totals,
    ...asked,
    period:
      period === null ? null : { from: new Date(period.fromMs).toISOString(), to: new Date(period.toMs).toISOString() },
    mappingSeconds: measured.seconds,
    findings: plan.findings(isWhole),
  };
}

function mappersOf(all: readonly Claimed[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const { claim } of all) counts.set(mapperOf(claim), (counts.get(mapperOf(claim)) ?? 0) + 1);
  return Object.fromEntries(counts);
}

interface Reading {
  readonly config: GatewayConfig;
  readonly claims: Claims;
  readonly chosen: readonly Claimed[];
}

/** Reads several at a time; `found` is called in the order of the files, so that the first of two is the first. */
async function readFiles(
  { config, claims, chosen }: Reading,
  found: (planned: PlannedFile) => void,
  tick: PlanRequest["tick"],
  signal: AbortSignal,
): Promise<Measured> {
  const scratch = await mkdtemp(join(tmpdir(), "headgate-plan-"));
  const drops = new Map<string, Drop>();
  for (const options of config.drops) drops.set(options.name, await createDrop(options, { log: silentLog }));
  const mapping = openMapping(config, { root: scratch }, { log: silentLog, clock: systemClock });
  const measures: FileMeasure[] = [];
  const early = new Map<number, readonly PlannedFile[]>();
  let [reported, seconds] = [0, 0];
  try {
    await mapping.start(config.triggers.map(({ mapper }) => mapper));
    const planner = new Planner(config, claims, drops, mapping, scratch);
    const queue = chosen.entries();
    const startMs = systemClock.monotonicMs();
    const worker = async () => {
      for (const [index, { file, claim }] of queue) {
        if (signal.aborted) return;
        const fileMs = systemClock.monotonicMs();
        const { planned, sent } = await planner.inspect(file, index, signal);
        measures.push({
          points: sumOf(planned, ({ points }) => points),
          rejected: sumOf(planned, ({ rejected }) => rejected),
          ...{ sent, seconds: secondsSince(fileMs), group: groupOf(claim), size: file.size },
        });
        early.set(index, planned);
        for (let next = early.get(reported); next !== undefined; next = early.get(reported)) {
          next.forEach(found);
          early.delete(reported);
          reported += 1;
        }
        tick(measures.length, chosen.length);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, worker));
    seconds = secondsSince(startMs);
  } finally {
    await mapping.close();
    for (const drop of drops.values()) await drop.close();
    await rm(scratch, { recursive: true, force: true });
  }
  // Results are left when the reading was stopped before earlier files were read.
  for (const [, planned] of [...early].sort(([one], [other]) => one - other)) planned.forEach(found);
  return { files: measures, seconds };
}

function secondsSince(ms: number): number {
  return (systemClock.monotonicMs() - ms) / 1000;
}

function sampleOf(claimed: readonly HistoryFile[], read: readonly FileMeasure[], how: string): PlanSample {
  const bytes = sumOf(read, ({ size }) => size);
  const [files, all] = [read.length, claimed.length];
  return {
    ...{ files, bytes, unreadFiles: all - files },
    unreadBytes: sumOf(claimed, ({ size }) => size) - bytes,
    words:
      files === all
        ? null
        : `${how}${grouped(files)} of ${grouped(all)} files read: targets, period, units, overlaps, files with the ` +
          "same content, files that cannot be mapped and rejected rows are known for these alone, and gaps " +
          "between files not at all; --sample all reads every file",
  };
}

/** By the guard of the gateway: missing and ambiguous targets, units, dates. */
async function queryService(
  config: GatewayConfig,
  plan: Plan,
  onMissing: PlanRequest["onMissing"],
  signal: AbortSignal,
): Promise<Pick<PlanReport, "unfit" | "unaskedBecause">> {
  const samples = plan.samples();
  const name = config.triggers[0]?.service ?? config.services[0]?.name;
  const options = config.services.find((service) => service.name === name);
  if (options === undefined || samples.length === 0) return { unfit: [], unaskedBecause: null };
  const delivery = createDelivery(options, config.push, {
    journal: NO_JOURNAL,
    segments: { append: unsent, restore: unsent },
    log: silentLog,
  });
  try {
    const seen = await delivery.inspect(samples, signal);
    if (seen.status !== "seen") return { unfit: null, unaskedBecause: seen.reason };
    const covered = await onMissing(
      seen.missing.map((facts) => ({
        facts,
        file: plan.shareOf(targetWords(facts.target))?.files[0] ?? "",
      })),
    );
    // A target that occurs in two units is queried twice.
    const found = seen.findings.filter(({ target }) => !covered.has(target));
    const unfit = new Map(found.map((one) => [`${one.target} ${one.words}`, unfitOf(plan, one)]));
    for (const one of unfit.values()) plan.addUnfit(one);
    return { unfit: [...unfit.values()], unaskedBecause: null };
  } finally {
    await delivery.close();
  }
}

function unfitOf(plan: Plan, finding: TargetFinding): Unfit {
  const { what, target, words } = finding;
  const { files, fromMs, toMs } = plan.shareOf(target, finding) ?? { files: [], fromMs: 0, toMs: 0 };
  return { what, target, words, files, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

/** Nothing is sent, so nothing is recorded. */
const unsent = async (): Promise<never> => {
  throw new InvariantError("HG-BUG-001", {
    operation: "plan migration",
    subject: "delivery",
    message: "a plan sends nothing",
  });
};
const NO_JOURNAL: DeliveryJournal = {
  batches: unsent,
  advanceBatch: unsent,
  acceptBatch: unsent,
  splitBatch: unsent,
  renewKey: unsent,
};
