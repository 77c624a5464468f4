/** `migrate --dry-run`: maps the files, or a sample of them, asks the service what it knows of their targets, and sends nothing. */

import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { DeliveryJournal } from "../../delivery/delivery.ts";
import { createDelivery } from "../../delivery/service-delivery.ts";
import { createDrop } from "../../drops/create.ts";
import {
  type Estimate,
  estimate,
  type FileMeasure,
  type Measured,
  type Sending,
} from "../../migration/estimate.ts";
import type { HistoryFile } from "../../migration/history-files.ts";
import { Plan, type PlanFinding, type PlannedFile } from "../../migration/plan.ts";
import { chooseSample, type SampleLimits } from "../../migration/sample.ts";
import type { TargetFacts } from "../../model.ts";
import { systemClock } from "../../support/clock.ts";
import { InvariantError } from "../../support/errors.ts";
import { silentLog } from "../../support/log.ts";
import { targetWords } from "../../wire/index.ts";
import { openMapping } from "../../workers/open.ts";
import { type Claim, Claims, groupOf, mapperOf } from "./claims.ts";
import { Planner, plannedOf } from "./planner.ts";
import { count } from "./progress.ts";

/** Which files were read. Of the others only name, size and mapper are known. */
export interface PlanSample {
  readonly files: number;
  readonly bytes: number;
  readonly unreadFiles: number;
  readonly unreadBytes: number;
  /** What is known of the files read alone, in words; null when all were read. */
  readonly words: string | null;
}

/** A target that the service would not store as it comes, with the files read that hold it, and its period in them. */
export interface Unfit {
  readonly target: string;
  readonly words: string;
  readonly files: readonly string[];
  readonly from: string;
  readonly to: string;
}

export interface PlanReport {
  readonly files: number;
  readonly bytes: number;
  /** By mapper; `none` are claimed by no trigger, and of `(archives)` the entries are claimed. */
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
  /** Of the mapping of the files read, measured. */
  readonly mappingSeconds: number;
  readonly findings: readonly PlanFinding[];
}

export interface PlanRequest {
  /** Patterns that find nothing, in words. */
  readonly empty: readonly string[];
  readonly files: readonly HistoryFile[];
  readonly limits: SampleLimits;
  readonly sending: Sending;
  readonly tick: (done: number, of: number) => void;
  /** Told of targets that the account does not have. */
  readonly onMissing: (missing: readonly MissingTarget[]) => void;
}

/** With the first file read that holds it. */
export interface MissingTarget {
  readonly facts: TargetFacts;
  readonly file: string;
}

/** A file, and what becomes of it. */
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
  const claimed = all.filter(({ claim }) => claim.by !== "nobody");
  const listed = claimed.map(({ file, claim }) => ({ size: file.size, group: groupOf(claim) }));
  const chosen = chooseSample(listed, limits);
  const plan = new Plan();
  for (const { file, claim } of all)
    if (claim.by === "nobody") plan.add(plannedOf({ file, sha256: null }, null));
  const measured = await readFiles(
    { config, claims, chosen: chosen.flatMap((index) => claimed[index] ?? []) },
    (planned) => plan.add(planned),
    tick,
    signal,
  );
  const isWhole = measured.files.length === claimed.length;
  const asked = await askService(config, plan, onMissing, signal);
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
      period === null
        ? null
        : { from: new Date(period.fromMs).toISOString(), to: new Date(period.toMs).toISOString() },
    mappingSeconds: measured.seconds,
    findings: [
      ...empty.map((words) => ({ kind: "pattern" as const, files: [], target: null, words })),
      ...plan.findings(isWhole),
    ],
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

/** Several at a time; `found` is told in the order of the files, so that the first of two is the first. */
async function readFiles(
  { config, claims, chosen }: Reading,
  found: (planned: PlannedFile) => void,
  tick: PlanRequest["tick"],
  signal: AbortSignal,
): Promise<Measured> {
  const scratch = await mkdtemp(join(tmpdir(), "headgate-plan-"));
  const drops = new Map(
    config.drops.map((options) => [options.name, createDrop(options, { log: silentLog })]),
  );
  const mapping = openMapping(config, { root: scratch }, { log: silentLog, clock: systemClock });
  const measures: FileMeasure[] = [];
  const early = new Map<number, readonly PlannedFile[]>();
  let [told, seconds] = [0, 0];
  try {
    await mapping.start(config.triggers.map(({ mapper }) => mapper));
    const planner = new Planner(config, claims, drops, mapping, scratch);
    const queue = chosen.entries();
    const startMs = systemClock.monotonicMs();
    const hand = async () => {
      for (const [index, { file, claim }] of queue) {
        if (signal.aborted) return;
        const fileMs = systemClock.monotonicMs();
        const { planned, sent } = await planner.look(file, index, signal);
        measures.push({
          points: sumOf(planned, ({ points }) => points),
          rejected: sumOf(planned, ({ rejected }) => rejected),
          ...{ sent, seconds: secondsSince(fileMs), group: groupOf(claim), size: file.size },
        });
        early.set(index, planned);
        for (let next = early.get(told); next !== undefined; next = early.get(told)) {
          next.forEach(found);
          early.delete(told);
          told += 1;
        }
        tick(measures.length, chosen.length);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, hand));
    seconds = secondsSince(startMs);
  } finally {
    await mapping.close();
    for (const drop of drops.values()) await drop.close();
    await rm(scratch, { recursive: true, force: true });
  }
  // Left when it was stopped before the files in front of them were read.
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
        : `${how}${count(files)} of ${count(all)} files read: targets, period, units, overlaps, files with the same content, files that cannot be mapped and rejected rows are known for these alone, and gaps between files not at all; --sample all reads every file`,
  };
}

function sumOf<Item>(items: readonly Item[], amount: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + amount(item), 0);
}

/** By the guard of the gateway: missing and ambiguous targets, units, dates. */
async function askService(
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
    giveOwnFile: unsent,
    log: silentLog,
  });
  try {
    const seen = await delivery.inspect(samples, signal);
    if (seen.status !== "seen") return { unfit: null, unaskedBecause: seen.reason };
    onMissing(
      seen.missing.map((facts) => ({
        facts,
        file: plan.shareOf(targetWords(facts.target))?.files[0] ?? "",
      })),
    );
    // A target that is there in two units is asked for twice.
    const unfit = new Map(
      seen.findings.map(({ target, words }) => [`${target} ${words}`, unfitOf(plan, target, words)]),
    );
    return { unfit: [...unfit.values()], unaskedBecause: null };
  } finally {
    await delivery.close();
  }
}

function unfitOf(plan: Plan, target: string, words: string): Unfit {
  const { files, fromMs, toMs } = plan.shareOf(target) ?? { files: [], fromMs: 0, toMs: 0 };
  return { target, words, files, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

/** Nothing is sent, so that nothing is to be journalled. */
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
};
