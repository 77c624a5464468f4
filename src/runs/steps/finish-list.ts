/** The sources of accepted runs of one drop are archived or deleted as a list, and the runs' files leave the spool. */
import { type SetAside, setAside } from "../../drops/drop.ts";
import type { FinishPlan, FinishResult, Run } from "../../model.ts";
import { resultOf, type Settled } from "../../support/settled.ts";
import { tracedList } from "../spans.ts";
import { sourceWords } from "./finish-step.ts";
import {
  type DropEntry,
  entryOf,
  type ListResults,
  NEXT,
  REST,
  type RunSteps,
  type StepResult,
} from "./steps.ts";

interface Planned {
  readonly run: Run;
  readonly plan: FinishPlan;
}

interface Finished extends Planned {
  readonly result: FinishResult | SetAside;
}

export async function finishList(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ListResults> {
  const results = new Map<string, Settled<StepResult>>();
  const entry = steps.dropEntry(runs[0]?.drop ?? "");
  if (entry === undefined) return results;
  const end = (id: string, value: StepResult) => void results.set(id, { status: "fulfilled", value });
  /** The values of those that go on; the others have their result. */
  const each = async <Item, Value>(
    items: readonly Item[],
    runOf: (item: Item) => Run,
    work: (item: Item, at: number) => Promise<Value | null>,
  ): Promise<Value[]> => {
    const settled = await Promise.allSettled(items.map(async (item, at) => work(item, at)));
    return settled.flatMap((one, at) => {
      const item = items[at];
      if (one.status === "fulfilled") return one.value === null ? [] : [one.value];
      if (item !== undefined && !signal.aborted) results.set(runOf(item).id, one);
      return [];
    });
  };
  const planned = await each(
    runs,
    (run) => run,
    async (run) => {
      const held = await steps.ledger.fleet.holdRun(run);
      if (held?.state === "accepted" && held.finishedAt === null) return await planOf(held, entry, steps);
      end(run.id, held === null ? REST : NEXT);
      return null;
    },
  );
  const due = planned.map(({ run }) => run);
  const ended = await tracedList("finish", due, steps, () => finishAll(planned, entry, signal));
  const finished = await each(
    planned,
    ({ run }) => run,
    async (one, at) => {
      const result = resultOf(ended[at]);
      return await noteFinished({ ...one, result }, entry, steps);
    },
  );
  const settled = finished.filter((run) => isUnconfirmed(run, steps));
  for (const run of finished) end(run.id, { move: settled.includes(run) ? "rest" : "next", run });
  const retired = await steps.spool.retire(settled.map(({ id }) => id));
  // The next step meets the fault again, and words it.
  for (const [at, run] of settled.entries())
    if (retired[at]?.status === "rejected") end(run.id, { move: "next", run });
  return results;
}

/** What becomes of the source, durably decided. */
async function planOf(run: Run, { finish }: DropEntry, { ledger, planFinish }: RunSteps): Promise<Planned> {
  const plan = run.finishPlan ?? planFinish(finish.delivered, entryOf(run), run.id);
  // Nothing is done at the drop that would have to be known after a crash.
  const isNoted = run.finishPlan !== null || plan.action === "leave";
  if (!isNoted) await ledger.noteRun(run.id, { finishPlan: plan });
  if (plan.action !== "leave") await ledger.fleet.assertRun(run.id);
  return { run, plan };
}

async function finishAll(
  planned: readonly Planned[],
  { drop, guardMs }: DropEntry,
  signal: AbortSignal,
): Promise<readonly Settled<FinishResult | SetAside>[]> {
  const leaving = planned.filter(({ plan }) => plan.action !== "leave");
  const files = leaving.map(({ run, plan }) => ({ entry: entryOf(run), plan }));
  const ended: readonly Settled<FinishResult | SetAside>[] =
    guardMs > 0 ? await setAside(drop, files, signal) : await drop.finish(files, signal);
  const results = new Map(leaving.map(({ run }, at) => [run.id, ended[at]]));
  return planned.map(({ run }) => results.get(run.id) ?? { status: "fulfilled", value: "done" });
}

function noteFinished(
  { run, plan, result }: Finished,
  { guardMs }: DropEntry,
  steps: RunSteps,
): Promise<Run> {
  return steps.ledger.noteRun(run.id, {
    ...(run.finishPlan === null ? { finishPlan: plan } : {}),
    ...sourceWords(run, plan, result, guardMs, steps.clock),
    ...(isUnconfirmed(run, steps) ? { settled: true } : {}),
  });
}

/** Nobody will report whether it was stored. */
function isUnconfirmed(run: Run, steps: RunSteps): boolean {
  return steps.serviceEntry(run.binding.service)?.confirm.by === "none";
}
