/** Reports each step of a run as a span of its trace. */

import { wordsOf } from "#core/errors.ts";
import type { OpenSpan, Tracer } from "#core/trace-context.ts";
import type { Run } from "../model.ts";
import type { ListResults } from "./steps/list-results.ts";
import type { RunSteps, StepResult } from "./steps/steps.ts";

/** A step that has to wait has no span: it is taken again. */
export async function tracedStep(
  name: string,
  run: Run,
  steps: Pick<RunSteps, "tracer" | "ledger">,
  work: () => Promise<StepResult>,
): Promise<StepResult> {
  if (!steps.tracer.exports) return await work();
  const span = begin(name, run, steps.tracer);
  try {
    const result = await work();
    if (result.move !== "wait") await endSpan(span, run, result.run, steps, 1);
    return result;
  } catch (thrown) {
    span.end({}, wordsOf(thrown));
    throw thrown;
  }
}

/** A step of a list is a span of each of its runs. */
export async function tracedList<Value>(
  name: string,
  runs: readonly Run[],
  { results, steps }: { readonly results: ListResults; readonly steps: Pick<RunSteps, "tracer" | "ledger"> },
  work: () => Promise<Value>,
): Promise<Value> {
  if (!steps.tracer.exports) return await work();
  const spans = runs.map((run) => [run, begin(name, run, steps.tracer)] as const);
  let fault: string | undefined;
  try {
    return await work();
  } catch (thrown) {
    fault = wordsOf(thrown);
    throw thrown;
  } finally {
    for (const [run, span] of spans) {
      const settled = results.get(run);
      if (settled?.status === "rejected") span.end({}, wordsOf(settled.reason));
      else if (settled === undefined && fault !== undefined) span.end({}, fault);
      else if (settled?.value.move !== "wait") await endSpan(span, run, settled?.value.run, steps, runs.length);
    }
  }
}

/** `after`: the run after the step, if it is known. Does not reject: the step is done. */
async function endSpan(
  span: OpenSpan,
  { id }: Run,
  after: Run | undefined,
  { ledger }: Pick<RunSteps, "ledger">,
  runs: number,
): Promise<void> {
  const now = after ?? (await ledger.run(id).catch(() => null));
  span.end(
    {
      ...(runs === 1 ? {} : { "headgate.runs": runs }),
      ...(now === null ? {} : { "headgate.state": now.state, "headgate.points": now.points.mapped }),
    },
    now?.state === "quarantined" ? now.reason?.message : undefined,
  );
}

function begin(name: string, run: Run, tracer: Tracer): OpenSpan {
  const { trigger, mapper, service } = run.binding;
  return tracer.begin({
    name,
    runId: run.id,
    attributes: {
      "headgate.drop": run.drop,
      "headgate.trigger": trigger,
      "headgate.mapper": mapper.name,
      "headgate.service": service,
    },
  });
}
