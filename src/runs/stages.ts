/** The stages of the scheduler: which runs come to each, and with how many hands. */
import type { Run, RunState } from "../model.ts";
import { type RunStage, runStatesThat } from "../states.ts";
import type { OnService } from "./waits.ts";

export interface SchedulerOptions {
  /** Runs fetched and mapped side by side; those of small files come on top. */
  readonly intakeConcurrency: number;
  /** At most so many of one drop, small or not; null for as many as there are hands. */
  readonly intakePerDrop: number | null;
  /** Runs delivered side by side, for each service; those of small files come on top. */
  readonly deliveryConcurrency: number;
  readonly intakeRule?: IntakeRule | undefined;
  /** See `Waits`. */
  readonly onService?: OnService | undefined;
}

/** Somebody else decides whether runs are fetched and mapped; whoever says otherwise wakes the scheduler. */
export interface IntakeRule {
  readonly isClosed: () => boolean;
  /**
   * Whether it depends on what becomes of those before: small files are taken in groups then, each after the last of the group before. Those with faults
   * take longer than others, so that these would all be taken before the first fault shows.
   */
  readonly byGroups: boolean;
}

export interface Stage {
  readonly name: RunStage;
  /** For each service at the stage of delivery, otherwise altogether. */
  hands: number;
  /** More hands, for runs of small files alone. */
  readonly smallFileSlots: number;
  /** Small files are taken when none is in hand. */
  readonly byGroups: boolean;
  /** At most so many of one drop. */
  readonly perDrop: number;
  /** Nothing is taken in hand for now. */
  readonly isClosed: () => boolean;
  /** What takes turns. */
  readonly by: "drop" | "lane";
  readonly states: readonly RunState[];
  /** Of these, only runs whose source was not finished, or for which something is still awaited. */
  readonly only: { readonly unfinished?: boolean; readonly unsettled?: boolean };
  /** Runs in hand. */
  readonly running: Map<string, Run>;
  /** Where the next turn begins. */
  turn: number;
  /** Nothing more is ready before that, unless a run comes or somebody tells. */
  emptyUntilMs: number;
  /** When it was last filled. */
  filledMs: number;
}

/** The ledger is not asked at every look for what was not there. */
const EMPTY_MS = 30_000;

/** A stage with most of its many hands full is not looked at again for so long, in milliseconds: what is free then is filled at once. */
const FULL_MS = 40;
const FULL_SHARE = 0.75;

const CLOSING_HANDS = 4;
const HELD_HANDS = 2;
/** Few, so that a service that comes back is not asked about everything at once. */
const UNCONFIRMED_HANDS = 2;
/**
 * A small file costs little but waiting, for the disk and for commits, which many can share. So many more of them are in hand; how many
 * are mapped or sent at a time is limited by the pool and by the gate of the service all the same.
 */
const SMALL_BYTES = 256 * 1024;
/** `group`: of an intake that takes them in groups. */
const SMALL_HANDS = { intake: 256, group: 48, delivery: 256, closing: 128 } as const;

export function openStages(options: SchedulerOptions): readonly Stage[] {
  const { isClosed, byGroups } = options.intakeRule ?? { isClosed: () => false, byGroups: false };
  return [
    stage({
      name: "intake",
      hands: options.intakeConcurrency,
      smallFileSlots: byGroups ? SMALL_HANDS.group : SMALL_HANDS.intake,
      byGroups,
      perDrop: options.intakePerDrop ?? Number.POSITIVE_INFINITY,
      by: "drop",
      isClosed,
    }),
    stage({
      name: "delivery",
      hands: options.deliveryConcurrency,
      smallFileSlots: SMALL_HANDS.delivery,
      by: "lane",
    }),
    stage({
      name: "containers",
      hands: CLOSING_HANDS,
      by: "drop",
      only: { unsettled: true },
    }),
    stage({ name: "held", hands: HELD_HANDS, by: "lane" }),
    stage({
      name: "confirming",
      hands: CLOSING_HANDS,
      smallFileSlots: SMALL_HANDS.closing,
      by: "lane",
      only: { unsettled: true },
    }),
    stage({
      name: "unconfirmed",
      hands: UNCONFIRMED_HANDS,
      by: "lane",
      only: { unsettled: true },
    }),
    stage({
      name: "finishing",
      hands: CLOSING_HANDS,
      smallFileSlots: SMALL_HANDS.closing,
      by: "drop",
      only: { unfinished: true },
    }),
  ];
}

function stage(
  facts: Pick<Stage, "name" | "hands" | "by"> &
    Partial<Pick<Stage, "only" | "perDrop" | "smallFileSlots" | "byGroups" | "isClosed">>,
): Stage {
  return {
    only: {},
    perDrop: Number.POSITIVE_INFINITY,
    smallFileSlots: 0,
    byGroups: false,
    isClosed: () => false,
    ...facts,
    states: runStatesThat((one) => one.stage === facts.name),
    running: new Map(),
    turn: 0,
    emptyUntilMs: 0,
    filledMs: Number.NEGATIVE_INFINITY,
  };
}

/** Milliseconds until it is to be looked at again, null for when somebody asks. 0: it is to be filled now, and noted as such. */
export function beginToFill(stage: Stage, nowMs: number): number | null {
  const hands = stage.hands + stage.smallFileSlots;
  if (stage.emptyUntilMs > nowMs || (stage.name !== "delivery" && stage.running.size >= hands)) return null;
  const hasEnough = stage.smallFileSlots > 0 && stage.running.size >= FULL_SHARE * hands;
  if (hasEnough && nowMs - stage.filledMs < FULL_MS) return FULL_MS;
  stage.emptyUntilMs = nowMs + EMPTY_MS;
  stage.filledMs = nowMs;
  return 0;
}

/** Answers, run by run, whether one more may be taken in hand, and counts it as taken when it may. */
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
    if (!mayBeSmall && all - Math.min(small, stage.smallFileSlots) >= stage.hands) return false;
    add(run);
    return true;
  };
}

function isSmall(run: Run): boolean {
  return run.size <= SMALL_BYTES;
}
