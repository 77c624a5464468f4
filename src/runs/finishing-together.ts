/** The sources of the accepted runs of a party are archived or deleted together, and what is kept of the runs leaves the spool. */
import { type SetAside, setAside } from "../drops/drop.ts";
import type { FinishPlan, FinishResult, Run } from "../model.ts";
import { sourceWords } from "./finish-step.ts";
import { tracedParty } from "./spans.ts";
import { entryOf, type RunSteps, type StepResult } from "./steps.ts";

interface Planned {
  readonly run: Run;
  readonly plan: FinishPlan;
}

interface Finished extends Planned {
  readonly result: FinishResult | SetAside;
}

/** Of runs of one drop. */
export async function finishTogether(
  runs: readonly Run[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StepResult>> {
  const planned = await planAll(runs, steps);
  const due = planned.map(({ run }) => run);
  const finished = await tracedParty("finish", due, steps, () => finishAll(planned, steps, signal));
  const results = new Map<string, StepResult>();
  const settled: Run[] = [];
  const record = async (one: Finished) => {
    const run = await noteFinished(one, steps);
    const isSettled = isUnconfirmed(run, steps);
    results.set(run.id, { move: isSettled ? "rest" : "next", run });
    if (isSettled) settled.push(run);
  };
  // What failed is tried again by itself.
  await Promise.allSettled(finished.map(record));
  const retired = await steps.spool.retire(settled.map(({ id }) => id));
  // It meets the fault again by itself, and says it.
  for (const [at, run] of settled.entries())
    if (retired[at]?.status === "rejected") results.set(run.id, { move: "next", run });
  return results;
}

/** Those that this node may finish, with what becomes of their sources, durably decided. */
async function planAll(runs: readonly Run[], steps: RunSteps): Promise<readonly Planned[]> {
  const { ledger } = steps;
  const post = steps.dropEntry(runs[0]?.drop ?? "");
  if (post === undefined) return [];
  const plan = async (run: Run): Promise<Planned | null> => {
    const held = await ledger.fleet.holdRun(run);
    if (held === null || held.state !== "accepted" || held.finishedAt !== null) return null;
    const decided = held.finishPlan ?? steps.planFinish(post.finish.delivered, entryOf(held), held.id);
    // Nothing is done at the drop that would have to be known after a crash.
    const isNoted = held.finishPlan !== null || decided.action === "leave";
    if (!isNoted) await ledger.noteRun(held.id, { finishPlan: decided });
    if (decided.action !== "leave") await ledger.fleet.assertRun(held.id);
    return { run: held, plan: decided };
  };
  const ended = await Promise.allSettled(runs.map(plan));
  return ended.flatMap((end) => (end.status === "fulfilled" && end.value !== null ? [end.value] : []));
}

/** Those of which it is known how it ended. */
async function finishAll(
  planned: readonly Planned[],
  steps: RunSteps,
  signal: AbortSignal,
): Promise<readonly Finished[]> {
  const staying = planned.filter(({ plan }) => plan.action === "leave");
  const leaving = planned.filter(({ plan }) => plan.action !== "leave");
  const post = steps.dropEntry(planned[0]?.run.drop ?? "");
  const isWatched = (post?.guardMs ?? 0) > 0;
  const wanted = leaving.map(({ run, plan }) => ({ entry: entryOf(run), plan }));
  const results =
    wanted.length === 0 || post === undefined
      ? []
      : isWatched
        ? await setAside(post.drop, wanted, signal)
        : await post.drop.finish(wanted, signal);
  return [
    ...staying.map((one) => ({ ...one, result: "done" as const })),
    ...leaving.flatMap((one, index) => {
      const settled = results[index];
      return settled?.status === "fulfilled" ? [{ ...one, result: settled.value }] : [];
    }),
  ];
}

function noteFinished({ run, plan, result }: Finished, steps: RunSteps): Promise<Run> {
  return steps.ledger.noteRun(run.id, {
    ...(run.finishPlan === null ? { finishPlan: plan } : {}),
    ...sourceWords(run, plan, result, steps.dropEntry(run.drop)?.guardMs ?? 0, steps.clock),
    ...(isUnconfirmed(run, steps) ? { settled: true } : {}),
  });
}

/** Nobody will tell whether it was stored. */
function isUnconfirmed(run: Run, steps: RunSteps): boolean {
  return steps.serviceEntry(run.binding.service)?.confirm.by === "none";
}
