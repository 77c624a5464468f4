/** The runs of a drop or a lane that a stage may take next. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { freeSlots, type Stage } from "./stages.ts";

/**
 * Runs of a drop or a lane that are considered beyond the running ones, so that waiting runs hide no ready
 * ones.
 */
export const LOOK_AHEAD = 200;
/** Runs that are read at a time. */
const PAGE = { least: 8, most: 64 };

/** Returns the first ready runs, and whether others may be ready behind them. */
export async function readyRuns(
  ledger: Pick<Ledger, "runsIn">,
  stage: Stage,
  group: string,
  wanted: number,
  isReady: (run: Run) => boolean,
): Promise<{ readonly runs: Run[]; readonly isCut: boolean }> {
  const ready: Run[] = [];
  const filter = { ...stage.only, ours: true, [stage.by]: group, except: [...stage.running.keys()] };
  const free = Math.max(PAGE.least, wanted - stage.running.size);
  let limit = Math.min(PAGE.most, free);
  let after: string | undefined;
  for (let seen = 0; seen < LOOK_AHEAD && ready.length < free; limit = Math.min(PAGE.most, 2 * limit)) {
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
  slots: number,
  stage: Stage,
  isReady: (run: Run) => boolean,
): readonly Run[] {
  const mayTake = freeSlots(stage);
  const taken: Run[] = [];
  for (let rank = 0; rank < slots; rank += 1) {
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
