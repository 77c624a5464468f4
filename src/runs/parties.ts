/**
 * Runs of small files take some steps together: for many of them one message to a mapping process, one look at the disk and one transaction
 * cost little more than for one. A party knows the plain good case alone. A run that meets anything else leaves it with nothing recorded,
 * and takes the step by itself, which finds out and says what is wrong.
 */
import type { Run } from "../model.ts";
import { finishTogether } from "./finishing-together.ts";
import type { RunSteps, StepResult } from "./steps.ts";
import { takeInTogether } from "./taking-in-together.ts";

/** By the ids of the runs that came through. */
export type PartyResults = ReadonlyMap<string, StepResult>;

export interface Party {
  readonly runs: readonly Run[];
  /** Never rejects. After `signal` nothing more is begun. */
  take(signal: AbortSignal): Promise<PartyResults>;
}

type PartyStep = (runs: readonly Run[], steps: RunSteps, signal: AbortSignal) => Promise<PartyResults>;

interface Place {
  /** Runs of one party have the same. */
  readonly key: string;
  readonly step: PartyStep;
}

/** Fewer have nothing to gain, and more would keep the next stage waiting. Where many are in hand, a party waits a moment for `good` ones. */
const RUNS = { least: 2, good: 16, most: 64 } as const;
/** How long that is, in milliseconds. */
export const GATHER_MS = 100;
const BYTES_MAX = 64 * 1024;
/** Of all files of a party, which come into one file with what is made of them. */
const TOGETHER_BYTES_MAX = 512 * 1024;

export interface Formed {
  readonly parties: readonly Party[];
  readonly alone: readonly Run[];
  /** To be looked at again, soon. */
  readonly gathering: readonly Run[];
}

export class Parties {
  readonly #steps: RunSteps;
  /** Since when the first of a place waits for others. */
  readonly #gatheringMs = new Map<string, number>();

  constructor(steps: RunSteps) {
    this.#steps = steps;
  }

  /** In the order given. `isCrowded`: others are in hand, after which more of the kind are likely to come. */
  form(runs: readonly Run[], isCrowded: boolean): Formed {
    const formed = { parties: [] as Party[], alone: [] as Run[], gathering: [] as Run[] };
    const groups = new Map<string, { readonly place: Place; readonly runs: Run[] }>();
    for (const run of runs) {
      const place = placeOf(run, this.#steps);
      if (place === null) formed.alone.push(run);
      else groups.getOrInsert(place.key, { place, runs: [] }).runs.push(run);
    }
    for (const { place, runs: group } of groups.values())
      for (const some of partsOf(group)) {
        if (isCrowded && some.length < RUNS.good && this.#mayGather(place)) {
          formed.gathering.push(...some);
          continue;
        }
        this.#gatheringMs.delete(place.key);
        if (some.length < RUNS.least) formed.alone.push(...some);
        else formed.parties.push({ runs: some, take: (signal) => this.#take(place, some, signal) });
      }
    return formed;
  }

  #mayGather({ key }: Place): boolean {
    const nowMs = this.#steps.clock.monotonicMs();
    return nowMs - this.#gatheringMs.getOrInsert(key, nowMs) < GATHER_MS;
  }

  async #take({ step }: Place, runs: readonly Run[], signal: AbortSignal): Promise<PartyResults> {
    const { log } = this.#steps;
    try {
      const results = await step(runs, this.#steps, signal);
      log.debug({ runs: runs.length, together: results.size }, "runs took a step together");
      return results;
    } catch (thrown) {
      // Each of them meets it again by itself, and says it.
      log.debug({ err: thrown, runs: runs.length, together: 0 }, "runs could not take a step together");
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
    if (part.length === 0 || part.length === RUNS.most || bytes + run.size > TOGETHER_BYTES_MAX) {
      part = [];
      bytes = 0;
      parts.push(part);
    }
    part.push(run);
    bytes += run.size;
  }
  return parts;
}

/** Null: it goes alone. */
function placeOf(run: Run, steps: RunSteps): Place | null {
  const { state, drop, binding } = run;
  // An entry of a container has no source of its own.
  if (run.size > BYTES_MAX || run.replay !== null || run.path.includes("!/")) return null;
  const post = steps.dropEntry(drop);
  if (post === undefined) return null;
  if (state === "accepted" && run.finishedAt === null) {
    const waits = steps.finishAfter(run, post.finish.delivered) === "confirmed";
    const isAlone = waits || post.drop.gainsByLists !== true;
    return isAlone ? null : { key: `out ${drop}`, step: finishTogether };
  }
  if (state !== "claimed" || run.reason !== null || post.drop.gainsByLists !== true) return null;
  const { mapper, unpack } = binding;
  if (unpack !== undefined || mapper.digest === "") return null;
  return { key: `in ${drop} ${mapper.name} ${mapper.digest}`, step: takeInTogether };
}
