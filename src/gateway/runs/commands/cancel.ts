/** Gives up a run that was not delivered. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import { mayBeStored } from "../../delivery/delivery.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run, RunState } from "../../model.ts";
import { CANCELLABLE_STATES } from "../../states.ts";
import { command, mustFindRun, whilePaused } from "./command.ts";

export interface CancelledRun {
  readonly run: string;
  readonly file: string;
  readonly was: RunState;
  /** Points that the service has. */
  readonly acceptedPoints: number;
  /** Operations that were sent and whose outcome is not known. */
  readonly unknown: readonly string[];
}

export const cancel = command({ run: z.string() }, ({ run, by, why }, parts) =>
  whilePaused(parts, run, () => cancelNow(run, by, why, parts.ledger)),
);

/** The run, and its operations whose outcome is not known. `RejectedError` when there is nothing left to cancel. */
export async function cancellable(
  id: string,
  ledger: Pick<Ledger, "run" | "batches">,
): Promise<{ readonly run: Run; readonly unknown: readonly string[] }> {
  const run = await mustFindRun(id, ledger);
  if (!CANCELLABLE_STATES.includes(run.state))
    throw new RejectedError("HG-RUN-011", {
      operation: "cancel run",
      subject: id,
      message: `run ${id} of ${run.path} is ${run.state}: there is nothing left to cancel`,
    });
  const unknown = (await ledger.batches(id))
    .filter((batch) => batch.state === "sending" && mayBeStored(batch))
    .map(({ operationId }) => operationId);
  return { run, unknown };
}

/** A batch that was sent stays as it is; one whose outcome is unknown is named as such. */
export async function cancelNow(id: string, by: string, why: string, ledger: Ledger): Promise<CancelledRun> {
  const { run, unknown } = await cancellable(id, ledger);
  const message = cancelWords(run, unknown, by, why);
  await ledger.advanceRun(id, run.state, "cancelled", {
    reason: { code: "HG-RUN-010", message },
    detail: message,
  });
  return { run: id, file: run.path, was: run.state, acceptedPoints: run.points.accepted, unknown };
}

export function cancelWords(run: Run, unknown: readonly string[], by: string, why: string): string {
  const facts = [
    `cancelled by ${by}${why === "" ? "" : `: ${why}`}`,
    ...(run.points.accepted === 0 ? [] : [`${run.points.accepted} points were accepted before and stay`]),
    ...(unknown.length === 0
      ? []
      : [
          `the outcome of ${unknown.length === 1 ? "operation" : "operations"} ${unknown.join(", ")} is not known: ` +
            "sent, and not answered",
        ]),
  ];
  return facts.join("; ");
}
