/** Each step of a run as a span of its trace. */
import type { Run } from "../model.ts";
import { wordsOf } from "../support/errors.ts";
import type { OpenSpan, Tracer } from "../support/trace-context.ts";
import type { RunSteps, StepResult } from "./steps/steps.ts";

/** A step that has to wait is no span: it is taken again. */
export async function tracedStep(
  name: string,
  run: Run,
  { tracer, ledger }: Pick<RunSteps, "tracer" | "ledger">,
  work: () => Promise<StepResult>,
): Promise<StepResult> {
  if (!tracer.exports) return await work();
  const span = begin(name, run, tracer);
  try {
    const result = await work();
    if (result.move === "wait") return result;
    const now = await ledger.run(run.id);
    span.end(
      now === null ? {} : { "headgate.state": now.state, "headgate.points": now.points.mapped },
      now?.state === "quarantined" ? now.reason?.message : undefined,
    );
    return result;
  } catch (thrown) {
    span.end({}, wordsOf(thrown));
    throw thrown;
  }
}

/** A step that a list of runs takes is a span of each. */
export async function tracedList<Result>(
  name: string,
  runs: readonly Run[],
  { tracer }: Pick<RunSteps, "tracer">,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!tracer.exports) return await work();
  const spans = runs.map((run) => begin(name, run, tracer));
  try {
    return await work();
  } finally {
    for (const span of spans) span.end({ "headgate.together": runs.length });
  }
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
