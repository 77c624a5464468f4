/**
 * `claimed → fetched → mapping → mapped`, or aside, for a list of runs of one drop and one version of a mapper: their
 * inputs come into one file of the spool, and all states are recorded in one transaction. Each run has its own result.
 */
import { rm } from "node:fs/promises";
import { basename } from "node:path/posix";
import type { FetchedPart } from "../../drops/drop.ts";
import type { RunAdvance } from "../../ledger/ledger.ts";
import type { MapJob, MapResult } from "../../mapping/contract.ts";
import type { Run } from "../../model.ts";
import { faultPoint } from "../../support/faults.ts";
import { resultOf, type Settled } from "../../support/settled.ts";
import { tracedList } from "../spans.ts";
import { afterFailedFetch, afterKnownContent, waitForSpace } from "./fetch-step.ts";
import { isMapperChanged, mapperWords, outcomeOf, rebind } from "./map-step.ts";
import { entryOf, type ListResults, NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

interface Fetched {
  readonly run: Run;
  readonly file: FetchedPart;
}

interface Mapped extends Fetched {
  readonly result: MapResult;
}

export async function intakeList(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ListResults> {
  const [first] = runs;
  if (first === undefined) return new Map();
  steps.pool.prepare(first.binding.mapper);
  const path = steps.spool.newSegment(first.id);
  const intake = new Intake(path, steps, signal);
  try {
    await intake.take(runs);
    return intake.results;
  } finally {
    // A file that cannot be removed now is swept when the gateway starts.
    await rm(path, { force: true }).catch(() => undefined);
  }
}

class Intake {
  /** Runs without a result were left when the signal was aborted. */
  readonly results = new Map<string, Settled<StepResult>>();
  /** Full path of the one file that the inputs come to, and the segments of the runs that are mapped in it. */
  readonly #path: string;
  readonly #steps: RunSteps;
  readonly #signal: AbortSignal;

  constructor(path: string, steps: RunSteps, signal: AbortSignal) {
    this.#path = path;
    this.#steps = steps;
    this.#signal = signal;
  }

  async take(runs: readonly Run[]): Promise<void> {
    const held = await this.#eachOf(
      runs,
      (run) => run,
      (run) => this.#hold(run),
    );
    const fetched = await tracedList("fetch", held, this.#steps, () => this.#fetch(held));
    if (this.#signal.aborted || fetched.length === 0) return;
    faultPoint("run.fetch.stored");
    const taken = fetched.map(({ run }) => run);
    const mapped = await tracedList("map", taken, this.#steps, () => this.#map(fetched));
    faultPoint("run.map.segment");
    if (!this.#signal.aborted) await this.#record(mapped);
  }

  /** Items for which the work has a value go on; a run has its result when it is null, or when the work throws. */
  async #eachOf<Item, Value>(
    items: readonly Item[],
    runOf: (item: Item) => Run,
    work: (item: Item, at: number) => Promise<Value | null>,
  ): Promise<Value[]> {
    const settled = await Promise.allSettled(items.map(async (item, at) => work(item, at)));
    return settled.flatMap((one, at) => {
      const item = items[at];
      if (one.status === "fulfilled") return one.value === null ? [] : [one.value];
      if (item !== undefined && !this.#signal.aborted) this.results.set(runOf(item).id, one);
      return [];
    });
  }

  #end({ id }: Run, value: StepResult): null {
    this.results.set(id, { status: "fulfilled", value });
    return null;
  }

  /** The run, when this node may work on it and it stands as it was read. */
  async #hold(run: Run): Promise<Run | null> {
    const held = await this.#steps.ledger.fleet.holdRun(run);
    if (held?.state === "claimed") return held;
    return this.#end(run, held === null ? REST : NEXT);
  }

  async #fetch(held: readonly Run[]): Promise<readonly Fetched[]> {
    const { room, dropEntry } = this.#steps;
    const entry = dropEntry(held[0]?.drop ?? "");
    if (entry === undefined) return [];
    // One after another, so that each finds the space that the others left.
    const reserved: Run[] = [];
    for (const run of held) if (await this.#reserve(run, entry.drop.kind === "http")) reserved.push(run);
    const done = new Set<string>();
    try {
      const files = await entry.drop.fetch(reserved.map(entryOf), this.#path, this.#signal);
      return await this.#eachOf(
        reserved,
        (run) => run,
        async (run, at) => {
          const settled = files[at];
          if (settled?.status === "rejected" && !this.#signal.aborted)
            return this.#end(run, await afterFailedFetch(run, settled.reason, this.#steps, this.#signal));
          const file = resultOf(settled);
          // An input of an earlier attempt, perhaps a part of it, would be taken for the input of the run.
          if (await this.#steps.spool.hasInput(run.id)) await this.#steps.spool.discard(run.id, "input");
          done.add(run.id);
          return { run, file };
        },
      );
    } finally {
      for (const run of reserved) room.fetched(run.id, done.has(run.id) ? run.size : null);
    }
  }

  async #reserve(run: Run, isBody: boolean): Promise<boolean> {
    const [reserved] = await this.#eachOf(
      [run],
      () => run,
      async () => {
        const refused = await this.#steps.room.reserve(run.id, run.size, false, isBody);
        return refused === null ? run : this.#end(run, await waitForSpace(run, refused, this.#steps));
      },
    );
    return reserved !== undefined;
  }

  async #map(fetched: readonly Fetched[]): Promise<readonly Mapped[]> {
    const { pool, room } = this.#steps;
    const jobs = await Promise.all(fetched.map((one) => this.#jobOf(one)));
    const results = await pool.map(jobs, this.#signal);
    return await this.#eachOf(
      fetched,
      ({ run }) => run,
      async (one, at) => {
        const result = resultOf(results[at]);
        room.mapped(one.run.id);
        if (isMapperChanged(result) && (await rebind(one.run, this.#steps))) return this.#end(one.run, NEXT);
        await this.#keepInput(one, result);
        return { ...one, result };
      },
    );
  }

  async #jobOf({ run, file }: Fetched): Promise<MapJob> {
    const { lookups, spool } = this.#steps;
    const { id, path, binding } = run;
    return {
      runId: id,
      inputPath: this.#path,
      input: spanOf(file),
      inputSha256: file.sha256,
      fileName: basename(path),
      filePath: path,
      binding,
      lookups: binding.lookups === undefined ? [] : await lookups.filesFor(binding),
      segmentPath: spool.segmentPath(id),
    };
  }

  /** A run that has no part in the common segment has its input in a file of its own. */
  async #keepInput({ run, file }: Fetched, result: MapResult): Promise<void> {
    const { spool } = this.#steps;
    if (result.status === "mapped" && result.holdsInput === true) return;
    const isMapped = result.status === "mapped" && result.batches.length > 0;
    // A file that a crash left under this name is not the segment of this attempt.
    if (!isMapped) await spool.discard(run.id, "segment");
    await spool.cutInput(run.id, this.#path, spanOf(file));
  }

  /** In one transaction. */
  async #record(mapped: readonly Mapped[]): Promise<void> {
    const advances = mapped.map((one) => this.#advanceOf(one));
    const advanced = await this.#steps.ledger.advanceRuns(advances);
    await this.#eachOf(
      mapped,
      ({ run }) => run,
      async (one, at) => {
        const answer = advanced[at];
        if (answer === undefined) return null;
        if (answer.run !== null) return this.#end(one.run, moveOf(answer.run));
        if (answer.why === "fault") throw answer.thrown;
        return this.#end(one.run, await this.#afterKnown(one, advances[at]));
      },
    );
  }

  /** Its bytes came before, or may have: whether its readings are delivered is a matter of the drop's rule. */
  async #afterKnown({ run, file }: Mapped, advance: RunAdvance | undefined): Promise<StepResult> {
    const { ledger, spool } = this.#steps;
    const result = await afterKnownContent(run, file.sha256, this.#steps);
    if (result === null && advance !== undefined) {
      const { duplicates: _, ...anyway } = advance;
      const [answer] = await ledger.advanceRuns([anyway]);
      if (answer?.run === null && answer.why === "fault") throw answer.thrown;
      if (answer !== undefined && answer.run !== null) return moveOf(answer.run);
    }
    await spool.cutInput(run.id, this.#path, spanOf(file));
    // Kept with the run, it would be found as batches that were sent.
    await spool.discard(run.id, "segment");
    return result ?? NEXT;
  }

  #advanceOf({ run, file: { bytes, sha256 }, result }: Mapped): RunAdvance {
    const { passage, mapped } = outcomeOf(run, result);
    const detail = `${bytes} bytes, sha256 ${sha256}`;
    return {
      id: run.id,
      from: "claimed",
      through: [
        { to: "fetched", change: { sha256, reason: null, detail } },
        { to: "mapping", change: { detail: mapperWords(run) } },
        passage,
      ],
      duplicates: this.#steps.dropEntry(run.drop)?.duplicates ?? "skip",
      ...(mapped === undefined ? {} : { mapped }),
    };
  }
}

function spanOf({ offset, bytes }: FetchedPart) {
  return { offset, length: bytes };
}

function moveOf(run: Run): StepResult {
  return run.state === "mapped" ? { move: "next", run } : { move: "rest", run };
}
