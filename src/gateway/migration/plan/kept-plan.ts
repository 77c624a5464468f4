/** A plan that is kept in the folder of its migration, so that the console shows it before the migration starts. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isoInstant, systemClock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { unlessMissing } from "#core/errors.ts";
import type { PlanReport } from "./dry-run.ts";

const EXAMPLES = 5;
const PLAN = "plan.json";
const WRITE_EVERY_MS = 1_000;

export interface KeptPlan {
  readonly by: string;
  readonly begunAt: string;
  /** Of the process that makes it. */
  readonly pid: number;
  /** Files that were mapped, of those that are read. */
  readonly done: number;
  readonly of: number;
  readonly endedAt: string | null;
  /** Null before its end. */
  readonly report: PlanReport | null;
}

export class PlanKeeper {
  readonly #folder: string;
  readonly #begun: KeptPlan;
  #writing: Promise<void> = Promise.resolve();
  #nextMs = 0;

  constructor(folder: string, by: string) {
    this.#folder = folder;
    const begunAt = isoInstant(systemClock.now());
    const nothing = { done: 0, of: 0, endedAt: null, report: null };
    this.#begun = { by, begunAt, pid: process.pid, ...nothing };
  }

  /** The plan is shown as running from then on. */
  async begin(): Promise<void> {
    this.#write(this.#begun);
    await this.#writing;
  }

  tick(done: number, of: number): void {
    const nowMs = systemClock.monotonicMs();
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + WRITE_EVERY_MS;
    this.#write({ ...this.#begun, done, of });
  }

  async end(report: PlanReport): Promise<void> {
    const { files } = report.sample;
    const endedAt = isoInstant(systemClock.now());
    this.#write({ ...this.#begun, done: files, of: files, endedAt, report });
    await this.#writing;
  }

  #write(plan: KeptPlan): void {
    this.#writing = this.#writing.then(() => writeDurably(join(this.#folder, PLAN), JSON.stringify(plan)));
    // It is awaited at the end.
    this.#writing.catch(() => undefined);
  }
}

export async function readKeptPlan(folder: string): Promise<KeptPlan | null> {
  const text = await unlessMissing(readFile(join(folder, PLAN), "utf8"), null);
  return text === null ? null : (JSON.parse(text) as KeptPlan);
}

/** Whether the process that makes the plan still runs. */
export function isPlanning({ endedAt, pid }: KeptPlan): boolean {
  if (endedAt !== null) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // It has ended without a result.
    return false;
  }
}

/** A kept plan as the console shows it: its figures, and its findings by kind. */
export function planFacts(plan: KeptPlan) {
  const { by, begunAt, done, of, report } = plan;
  const state: "running" | "done" | "failed" = report !== null ? "done" : isPlanning(plan) ? "running" : "failed";
  return {
    ...{ by, at: begunAt, state, done, of },
    facts: report === null ? null : figuresOf(report),
    findings: report === null ? [] : findingsOf(report),
  };
}

function figuresOf({ files, bytes, estimate, targets, period, sample, unaskedBecause }: PlanReport) {
  const { points, isCounted, seconds, sendingSeconds } = estimate;
  const figures = { files, bytes, points: Math.round(points), isCounted, targets, seconds };
  return { ...figures, period, isAtLeast: sendingSeconds === null, sample: sample.words, unaskedBecause };
}

/** A line for each cause; those that need a person come first. */
function findingsOf({ findings }: PlanReport) {
  return findings.map(({ kind, count, places }) => ({ kind, count, examples: places.slice(0, EXAMPLES) }));
}
