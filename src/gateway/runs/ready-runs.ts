/** The runs that a stage may take next, by drops or lanes. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { RUN_STATES } from "../states.ts";
import { freeSlots, type Stage } from "./stages.ts";

/**
 * Runs of a drop or a lane that are considered beyond the running ones, so that waiting runs hide no ready
 * ones.
 */
export const READ_AHEAD = 200;
/** Waiting runs that are left out of a read; more cost as much as they save. */
const WAITING_MAX = 500;
/** Runs that are read at a time. */
const PAGE = { least: 8, most: 64 };

/** The first ready runs of each drop or lane. These take turns: each call begins with the next one. */
export async function readyQueues(
  ledger: Pick<Ledger, "groupsOf" | "runsIn">,
  stage: Stage,
  isReady: (run: Run) => boolean,
): Promise<readonly (readonly Run[])[]> {
  const groups = await ledger.groupsOf(stage.states, stage.by, { ...stage.only, ours: true });
  stage.turn = groups.length === 0 ? 0 : (stage.turn + 1) % groups.length;
  const queues: (readonly Run[])[] = [];
  for (const group of [...groups.slice(stage.turn), ...groups.slice(0, stage.turn)]) {
    const { runs, isCut } = await readyRuns(ledger, stage, group, isReady);
    if (isCut) stage.emptyUntilMs = 0;
    queues.push(runs);
  }
  return queues;
}

/** Returns the first ready runs, and whether others may be ready behind them. */
async function readyRuns(
  ledger: Pick<Ledger, "runsIn">,
  stage: Stage,
  group: string,
  isReady: (run: Run) => boolean,
): Promise<{ readonly runs: Run[]; readonly isCut: boolean }> {
  const ready: Run[] = [];
  const waiting = stage.waiting.values().take(WAITING_MAX);
  const filter = { ...stage.only, ours: true, [stage.by]: group, except: [...stage.running.keys(), ...waiting] };
  const free = Math.max(PAGE.least, stage.slots + stage.smallFileSlots - stage.running.size);
  let limit = Math.min(PAGE.most, free);
  let after: string | undefined;
  for (let seen = 0; seen < READ_AHEAD && ready.length < free; limit = Math.min(PAGE.most, 2 * limit)) {
    const page = after === undefined ? { ...filter, limit } : { ...filter, limit, after };
    const some = await ledger.runsIn(stage.states, page);
    ready.push(...some.filter(isReady));
    if (some.length < limit) return { runs: ready, isCut: false };
    after = some.at(-1)?.id;
    seen += some.length;
  }
  return { runs: ready.slice(0, free), isCut: true };
}

/** Takes runs of the queues in turns into the stage, as far as it has slots. */
export function takeTurns(
  queues: readonly (readonly Run[])[],
  stage: Stage,
  isReady: (run: Run) => boolean,
): readonly Run[] {
  const mayTake = freeSlots(stage);
  const taken: Run[] = [];
  for (let rank = 0; rank < stage.slots + stage.smallFileSlots; rank += 1) {
    for (const queue of queues) {
      const run = queue[rank];
      if (run === undefined || !isReady(run)) continue;
      if (!mayTake(run)) {
        stage.emptyUntilMs = 0;
        continue;
      }
      stage.running.set(run.id, run);
      taken.push(run);
    }
  }
  return taken;
}

/** Whether the other run blocks this one no longer: it may have moved while this one took its step. */
export async function isUnblocked(
  run: Run,
  blockedBy: string,
  ledger: Pick<Ledger, "run" | "blockedBy">,
): Promise<boolean> {
  const other = await ledger.run(blockedBy);
  // An opened container blocks other runs until its entries have runs, which block them then.
  if (other?.state === "opened") return (await ledger.blockedBy(run))?.id !== blockedBy;
  return other === null || !RUN_STATES[other.state].isOpen;
}
