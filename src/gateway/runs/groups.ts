/**
 * Groups runs that are due into lists that take their steps: for many small files one message to a mapping process, one
 * message to the thread of a disk and one transaction cost little more than for one. A run that gains nothing by a list
 * is a list of one.
 */
import type { Run } from "../model.ts";
import type { RunSteps } from "./steps/steps.ts";

/** More would keep the next stage waiting. */
const RUNS_MAX = 64;
/** Where many runs are in work, a group waits a moment until it has so many. */
const GOOD_RUNS = 16;
/** How long it waits, in milliseconds. */
export const GROUP_WAIT_MS = 100;
const BYTES_MAX = 64 * 1024;
/** Of all files of a group, which come into one segment with their batches. */
const GROUP_BYTES_MAX = 512 * 1024;

export interface Formed {
  /** Each takes its next step as a list. */
  readonly lists: readonly (readonly Run[])[];
  /** Runs that are checked again soon. */
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
    const lists: Run[][] = [];
    const waiting: Run[] = [];
    const kinds = new Map<string, Run[]>();
    for (const run of runs) {
      const kind = kindOf(run, this.#steps);
      if (kind === null) lists.push([run]);
      else kinds.getOrInsert(kind, []).push(run);
    }
    for (const [kind, all] of kinds)
      for (const some of partsOf(all)) {
        if (isCrowded && some.length < GOOD_RUNS && this.#mayWait(kind)) {
          waiting.push(...some);
          continue;
        }
        this.#waitingMs.delete(kind);
        lists.push([...some]);
      }
    return { lists, waiting };
  }

  #mayWait(kind: string): boolean {
    const nowMs = this.#steps.clock.monotonicMs();
    return nowMs - this.#waitingMs.getOrInsert(kind, nowMs) < GROUP_WAIT_MS;
  }
}

/** So many that each part is of good size. */
function partsOf(runs: readonly Run[]): readonly (readonly Run[])[] {
  const parts: Run[][] = [];
  let part: Run[] = [];
  let bytes = 0;
  for (const run of runs) {
    if (part.length === 0 || part.length === RUNS_MAX || bytes + run.size > GROUP_BYTES_MAX) {
      part = [];
      bytes = 0;
      parts.push(part);
    }
    part.push(run);
    bytes += run.size;
  }
  return parts;
}

/** Equal for runs of one list; null for a run that is a list of one. */
function kindOf(run: Run, steps: RunSteps): string | null {
  const { state, drop, binding } = run;
  // An entry of a container has no source of its own.
  if (run.size > BYTES_MAX || run.replay !== null || run.path.includes("!/")) return null;
  const entry = steps.dropEntry(drop);
  if (entry?.drop.gainsByLists !== true) return null;
  if (state === "accepted" && run.finishedAt === null) {
    const waits = steps.finishAfter(run, entry.finish.delivered) === "confirmed";
    return waits ? null : `out ${drop}`;
  }
  // A run that was mapped before has its batches where the ledger has them.
  if (state !== "claimed" || run.reason !== null || run.points.mapped > 0) return null;
  const { mapper, unpack, structure } = binding;
  if (unpack !== undefined || structure !== undefined || mapper.digest === "") return null;
  return `in ${drop} ${mapper.name} ${mapper.digest}`;
}
