/** The stages of the scheduler: which runs come to each, and with how many slots. */
import type { Run, RunState } from "../model.ts";
import { type RunStage, runStatesThat } from "../states.ts";
import type { OnService } from "./waits.ts";

export interface SchedulerOptions {
  /** Runs fetched and mapped side by side; those of small files come on top. */
  readonly intakeConcurrency: number;
  /** At most so many of one drop, small or not; null for as many as there are slots. */
  readonly intakePerDrop: number | null;
  /** See `Stage`. */
  readonly intakeSpare: number;
  /** Runs delivered side by side, for each service; those of small files come on top. */
  readonly deliveryConcurrency: number;
  readonly intakeRule?: IntakeRule | undefined;
  /** See `Waits`. */
  readonly onService?: OnService | undefined;
}

/**
 * A rule of a migration that decides whether runs are fetched and mapped; a change of it wakes the scheduler.
 */
export interface IntakeRule {
  readonly isClosed: () => boolean;
  /**
   * Whether the decision depends on the results of earlier files: small files are then taken in groups, each
   * after the last of the group before. Those with faults take longer than others, so that these would all be
   * taken before the first fault shows.
   */
  readonly byGroups: boolean;
}

export interface Stage {
  readonly name: RunStage;
  /** For each service at the stage of delivery, otherwise in all. */
  slots: number;
  /** Further slots, for runs of small files alone. */
  readonly smallFileSlots: number;
  /** A group of small files is taken when no small file is in progress. */
  readonly byGroups: boolean;
  /** Runs of one drop at the same time, at most. */
  readonly perDrop: number;
  /** Further slots, each for a drop without a run in progress, however many others have. */
  readonly spare: number;
  /** Whether no run is taken for now. */
  readonly isClosed: () => boolean;
  /** Whether drops or lanes take turns. */
  readonly by: "drop" | "lane";
  readonly states: readonly RunState[];
  /**
   * Limits the runs of these states to those whose source was not finished, or for which something is still
   * awaited.
   */
  readonly only: { readonly unfinished?: boolean; readonly unsettled?: boolean };
  /** Runs in progress. */
  readonly running: Map<string, Run>;
  /** Runs that wait after a step of this stage; some of these waits may be over. */
  readonly waiting: Set<string>;
  /** The drop or lane at which the next turn begins. */
  turn: number;
  /** No other run is ready before that time, unless the scheduler is woken. */
  emptyUntilMs: number;
  /** The time at which the stage was last filled. */
  filledMs: number;
}

/** A stage that had no ready run is read from the ledger again after this time. */
const EMPTY_MS = 30_000;

/**
 * Milliseconds after which a stage whose slots are mostly in use is filled again, so that several slots are
 * filled at once.
 */
const FULL_MS = 40;
const FULL_SHARE = 0.75;

const CLOSING_SLOTS = 4;
const HELD_SLOTS = 2;
/** Few, so that a service that comes back is not asked about everything at once. */
const UNCONFIRMED_SLOTS = 2;
/**
 * A small file costs little but waiting, for the disk and for commits, which many can share. So many more of
 * them are in progress; the pool and the gate of the service limit how many are mapped or sent at the same
 * time.
 */
const SMALL_BYTES = 256 * 1024;
/** `group`: for an intake that takes small files in groups. */
const SMALL_FILE_SLOTS = { intake: 256, group: 48, delivery: 256, closing: 256 } as const;

export function openStages(options: SchedulerOptions): readonly Stage[] {
  const { isClosed, byGroups } = options.intakeRule ?? { isClosed: () => false, byGroups: false };
  const stages: Readonly<Record<RunStage, StageRule>> = {
    intake: {
      slots: options.intakeConcurrency,
      smallFileSlots: byGroups ? SMALL_FILE_SLOTS.group : SMALL_FILE_SLOTS.intake,
      byGroups,
      perDrop: options.intakePerDrop ?? Number.POSITIVE_INFINITY,
      spare: options.intakeSpare,
      by: "drop",
      isClosed,
    },
    delivery: { slots: options.deliveryConcurrency, smallFileSlots: SMALL_FILE_SLOTS.delivery, by: "lane" },
    containers: { slots: CLOSING_SLOTS, by: "drop", only: { unsettled: true } },
    held: { slots: HELD_SLOTS, by: "lane" },
    confirming: {
      slots: CLOSING_SLOTS,
      smallFileSlots: SMALL_FILE_SLOTS.closing,
      by: "lane",
      only: { unsettled: true },
    },
    unconfirmed: { slots: UNCONFIRMED_SLOTS, by: "lane", only: { unsettled: true } },
    finishing: {
      slots: CLOSING_SLOTS,
      smallFileSlots: SMALL_FILE_SLOTS.closing,
      by: "drop",
      only: { unfinished: true },
    },
  };
  return (Object.keys(stages) as RunStage[]).map((name) => stage(name, stages[name]));
}

type StageRule = Pick<Stage, "slots" | "by"> &
  Partial<Pick<Stage, "only" | "perDrop" | "spare" | "smallFileSlots" | "byGroups" | "isClosed">>;

function stage(name: RunStage, rule: StageRule): Stage {
  return {
    name,
    only: {},
    perDrop: Number.POSITIVE_INFINITY,
    spare: 0,
    smallFileSlots: 0,
    byGroups: false,
    isClosed: () => false,
    ...rule,
    states: runStatesThat((one) => one.stage === name),
    running: new Map(),
    waiting: new Set(),
    turn: 0,
    emptyUntilMs: 0,
    filledMs: Number.NEGATIVE_INFINITY,
  };
}

/**
 * Returns the milliseconds until a stage is filled, or null until the scheduler is woken. With 0 it is filled
 * now, which is noted.
 */
export function beginToFill(stage: Stage, nowMs: number): number | null {
  const slots = stage.slots + stage.smallFileSlots;
  const isFull = stage.name !== "delivery" && stage.running.size >= slots + stage.spare;
  if (stage.emptyUntilMs > nowMs || isFull) return null;
  const hasEnough = stage.smallFileSlots > 0 && stage.running.size >= FULL_SHARE * slots;
  if (hasEnough && nowMs - stage.filledMs < FULL_MS) return FULL_MS;
  stage.emptyUntilMs = nowMs + EMPTY_MS;
  stage.filledMs = nowMs;
  return 0;
}

/**
 * Returns a function that says, run by run, whether one more may be taken, and counts it as taken when it
 * may.
 */
export function freeSlots(stage: Stage): (run: Run) => boolean {
  if (stage.isClosed()) return () => false;
  const perDrop = new Map<string, number>();
  const perService = new Map<string, { small: number; all: number }>();
  const serviceOf = (run: Run) => (stage.name === "delivery" ? run.binding.service : "");
  const add = (run: Run) => {
    const taken = perService.getOrInsert(serviceOf(run), { small: 0, all: 0 });
    taken.all += 1;
    if (isSmall(run)) taken.small += 1;
    perDrop.set(run.drop, (perDrop.get(run.drop) ?? 0) + 1);
  };
  for (const run of stage.running.values()) add(run);
  const waitsForGroup = stage.byGroups && (perService.get("")?.small ?? 0) > 0;
  return (run) => {
    if (waitsForGroup && isSmall(run)) return false;
    if ((perDrop.get(run.drop) ?? 0) >= stage.perDrop) return false;
    const { small, all } = perService.getOrInsert(serviceOf(run), { small: 0, all: 0 });
    const mayBeSmall = isSmall(run) && small < stage.smallFileSlots;
    const slots = stage.slots + (perDrop.has(run.drop) ? 0 : stage.spare);
    if (!mayBeSmall && all - Math.min(small, stage.smallFileSlots) >= slots) return false;
    add(run);
    return true;
  };
}

/**
 * Has the next scan read the stages of a state again, and that of containers for an entry, which moves its
 * container.
 */
export function readAgain(stages: readonly Stage[], { state, path }: Pick<Run, "state" | "path">): void {
  for (const stage of stages)
    if (stage.states.includes(state) || (stage.name === "containers" && path.includes("!/"))) stage.emptyUntilMs = 0;
}

function isSmall(run: Run): boolean {
  return run.size <= SMALL_BYTES;
}
