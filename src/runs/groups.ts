/**
 * Groups runs of small files, so that they take a step as a list: for many of them one message to a mapping process, one
 * message to the thread of a disk and one transaction cost little more than for one.
 */
import type { Run } from "../model.ts";
import { wordsOf } from "../support/errors.ts";
import { finishList } from "./steps/finish-list.ts";
import { intakeList } from "./steps/intake-list.ts";
import type { ListResults, RunSteps } from "./steps/steps.ts";

export interface Group {
  readonly runs: readonly Run[];
  /** Never rejects. After `signal` nothing more is begun. */
  take(signal: AbortSignal): Promise<ListResults>;
}

type ListStep = (runs: readonly Run[], steps: RunSteps, signal: AbortSignal) => Promise<ListResults>;

interface GroupKind {
  /** Runs of one group have the same. */
  readonly key: string;
  readonly step: ListStep;
}

/**
 * Fewer gain nothing, and more would keep the next stage waiting. Where many runs are in work, a group waits a moment
 * until it has `good` ones.
 */
const RUNS = { least: 2, good: 16, most: 64 } as const;
/** How long it waits, in milliseconds. */
export const GROUP_WAIT_MS = 100;
const BYTES_MAX = 64 * 1024;
/** Of all files of a group, which come into one file with what is made of them. */
const GROUP_BYTES_MAX = 512 * 1024;

export interface Formed {
  readonly groups: readonly Group[];
  readonly single: readonly Run[];
  /** To be checked again, soon. */
  readonly waiting: readonly Run[];
}

export class Groups {
  readonly #steps: RunSteps;
  /** Since when the first run of a kind waits for others. */
  readonly #waitingMs = new Map<string, number>();

  constructor(steps: RunSteps) {
    this.#steps = steps;
  }

  /** In the order given. `isCrowded`: others are in work, after which more of the kind are likely to come. */
  form(runs: readonly Run[], isCrowded: boolean): Formed {
    const formed = { groups: [] as Group[], single: [] as Run[], waiting: [] as Run[] };
    const kinds = new Map<string, { readonly kind: GroupKind; readonly runs: Run[] }>();
    for (const run of runs) {
      const kind = kindOf(run, this.#steps);
      if (kind === null) formed.single.push(run);
      else kinds.getOrInsert(kind.key, { kind, runs: [] }).runs.push(run);
    }
    for (const { kind, runs: all } of kinds.values())
      for (const some of partsOf(all)) {
        if (isCrowded && some.length < RUNS.good && this.#mayWait(kind)) {
          formed.waiting.push(...some);
          continue;
        }
        this.#waitingMs.delete(kind.key);
        if (some.length < RUNS.least) formed.single.push(...some);
        else formed.groups.push({ runs: some, take: (signal) => this.#take(kind, some, signal) });
      }
    return formed;
  }

  #mayWait({ key }: GroupKind): boolean {
    const nowMs = this.#steps.clock.monotonicMs();
    return nowMs - this.#waitingMs.getOrInsert(key, nowMs) < GROUP_WAIT_MS;
  }

  async #take({ step }: GroupKind, runs: readonly Run[], signal: AbortSignal): Promise<ListResults> {
    const { log } = this.#steps;
    try {
      const results = await step(runs, this.#steps, signal);
      log.debug({ runs: runs.length, results: results.size }, "runs took a step as a list");
      return results;
    } catch (thrown) {
      // Each run takes the step by itself next, which words the fault.
      log.warn(
        { err: thrown, runs: runs.length },
        `runs could not take a step as a list: ${wordsOf(thrown)}`,
      );
      return new Map();
    }
  }
}

/** So many that each part is of good size. */
function partsOf(runs: readonly Run[]): readonly (readonly Run[])[] {
  const parts: Run[][] = [];
  let part: Run[] = [];
  let bytes = 0;
  for (const run of runs) {
    if (part.length === 0 || part.length === RUNS.most || bytes + run.size > GROUP_BYTES_MAX) {
      part = [];
      bytes = 0;
      parts.push(part);
    }
    part.push(run);
    bytes += run.size;
  }
  return parts;
}

/** Null: the run takes its step by itself. */
function kindOf(run: Run, steps: RunSteps): GroupKind | null {
  const { state, drop, binding } = run;
  // An entry of a container has no source of its own.
  if (run.size > BYTES_MAX || run.replay !== null || run.path.includes("!/")) return null;
  const entry = steps.dropEntry(drop);
  if (entry?.drop.gainsByLists !== true) return null;
  if (state === "accepted" && run.finishedAt === null) {
    const waits = steps.finishAfter(run, entry.finish.delivered) === "confirmed";
    return waits ? null : { key: `out ${drop}`, step: finishList };
  }
  // A run that was mapped before has its batches where the ledger has them.
  if (state !== "claimed" || run.reason !== null || run.points.mapped > 0) return null;
  const { mapper, unpack } = binding;
  if (unpack !== undefined || mapper.digest === "") return null;
  return { key: `in ${drop} ${mapper.name} ${mapper.digest}`, step: intakeList };
}
