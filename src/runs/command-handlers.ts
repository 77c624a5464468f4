/**
 * Executes the commands of operators: in the daemon, or on the ledger alone when none runs; the next start
 * resumes from there.
 */
import { mayBeStored } from "../delivery/delivery.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import type { Spool } from "../spool/spool.ts";
import { CANCELLABLE_STATES, REPLAYABLE_STATES } from "../states.ts";
import { RejectedError } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import {
  type CancelledRun,
  type CommandResults,
  type ForgottenFile,
  type OperatorCommand,
  operatorCommand,
  type ReplayedRun,
} from "./commands.ts";
import type { Pauses } from "./pauses.ts";
import { recheck, release } from "./release.ts";
import { assertMapped, type BindingParts, replayBinding } from "./replay-mapper.ts";
import { attemptsBefore } from "./steps/exclusions.ts";

export interface CommandParts {
  readonly ledger: Ledger;
  readonly pauses: Pauses;
  readonly log: Logger;
  readonly spool: Pick<Spool, "holdsInput" | "openSegment" | "segmentPath">;
  readonly binding: BindingParts;
  /** Absent when no gateway runs. */
  readonly live?: LiveGateway;
}

export interface LiveGateway {
  /** See `Scheduler.withRunPaused`. */
  withRunPaused<T>(runId: string, work: () => Promise<T>): Promise<T>;
  /** The drop was paused or resumed, or the ledger forgot a file of it. */
  dropChanged(name: string): void;
  /** A run was opened, or may take its next step now. */
  onRun(runId?: string): void;
  /** The gateway asks its services again for the structure of accounts, and for what they stored. */
  structureChanged(): void;
  /** Unmatched files are offered to the triggers again. */
  triggersChanged(): void;
}

/** Throws `RejectedError` when the command is unknown or cannot be executed. */
export async function executeCommand(
  body: unknown,
  parts: CommandParts,
): Promise<CommandResults[OperatorCommand["order"]]> {
  const { data: command, error } = operatorCommand.safeParse(body);
  if (error !== undefined)
    throw new RejectedError("HG-OPS-002", {
      operation: "execute command",
      subject: "gateway",
      message: `this gateway does not know the command: ${error.issues[0]?.message ?? ""}`,
      hint: "Are the command and the gateway of the same version?",
    });
  parts.log.info({ ...command }, "an operator sent a command");
  switch (command.order) {
    case "cancel":
      return cancel(command, parts);
    case "forget":
      return forget(command, parts);
    case "replay":
      return replay(command, parts);
    case "release":
      return release(command, parts);
    case "recheck":
      return recheck(command, parts);
    case "pause": {
      const pause = await parts.pauses.set({
        kind: command.kind,
        name: command.name,
        by: command.by,
        why: command.why,
      });
      if (command.kind === "drop") parts.live?.dropChanged(command.name);
      return pause;
    }
    case "resume": {
      const wasPaused = await parts.pauses.end(command.kind, command.name);
      if (command.kind === "drop") parts.live?.dropChanged(command.name);
      else parts.live?.triggersChanged();
      return { wasPaused };
    }
  }
}

async function cancel(
  { run: id, by, why }: Extract<OperatorCommand, { order: "cancel" }>,
  parts: CommandParts,
): Promise<CancelledRun> {
  const live = parts.live;
  const work = () => cancelNow(id, by, why, parts.ledger);
  return live === undefined ? work() : live.withRunPaused(id, work);
}

/** A batch that was sent stays as it is; one whose outcome is unknown is named as such. */
async function cancelNow(id: string, by: string, why: string, ledger: Ledger): Promise<CancelledRun> {
  const run = await mustFindRun(id, ledger);
  if (!CANCELLABLE_STATES.includes(run.state))
    throw new RejectedError("HG-RUN-011", {
      operation: "cancel run",
      subject: id,
      message: `run ${id} of ${run.path} is ${run.state}: there is nothing left to cancel`,
    });
  const batches = await ledger.batches(id);
  const unknown = batches
    .filter((batch) => batch.state === "sending" && mayBeStored(batch))
    .map(({ operationId }) => operationId);
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
  const message = facts.join("; ");
  await ledger.advanceRun(id, run.state, "cancelled", {
    reason: { code: "HG-RUN-010", message },
    detail: message,
  });
  return { run: id, file: run.path, was: run.state, acceptedPoints: run.points.accepted, unknown };
}

export async function mustFindRun(id: string, ledger: Ledger): Promise<Run> {
  const run = await ledger.run(id);
  if (run !== null) return run;
  throw new RejectedError("HG-CLI-002", {
    operation: "find run",
    subject: id,
    message: `there is no run ${id} in the ledger`,
  });
}

async function forget(
  { drop, path, by, why }: Extract<OperatorCommand, { order: "forget" }>,
  parts: CommandParts,
): Promise<ForgottenFile> {
  const forgotten = await parts.ledger.forget(drop, path, { by, why });
  if (forgotten.arrivals === 0)
    throw new RejectedError("HG-CLI-002", {
      operation: "forget",
      subject: path,
      message: `the ledger knows no file ${path} at the drop ${drop}`,
    });
  parts.log.warn({ drop, path, by, why, ...forgotten }, "the ledger forgot a file");
  parts.live?.dropChanged(drop);
  return { drop, path, ...forgotten };
}

/** Cancels a held run, of which nothing was sent: the replay replaces it. */
async function cancelHeld(of: Run, by: string, live: LiveGateway | undefined, ledger: Ledger): Promise<void> {
  if (of.state !== "held") return;
  const work = () => cancelNow(of.id, by, "it is replayed", ledger);
  await (live === undefined ? work() : live.withRunPaused(of.id, work));
}

async function replay(
  command: Extract<OperatorCommand, { order: "replay" }>,
  { ledger, spool, binding, live }: CommandParts,
): Promise<ReplayedRun> {
  const { run: id, rejectedOnly, overwrite, by, trigger, mapper, settings } = command;
  const of = await mustFindRun(id, ledger);
  await assertReplayable(of, ledger);
  await assertInput(of, ledger, spool);
  const bound = await replayBinding(of, { trigger, mapper, settings }, binding);
  await cancelHeld(of, by, live, ledger);
  const run = await ledger.openRun(of.arrivalId, bound.binding, bound.lane, {
    replay: { of: of.id, rejectedOnly, overwrite, by },
  });
  live?.onRun();
  return { run: run.id, of: of.id, drop: run.drop, file: run.path };
}

async function assertReplayable(of: Run, ledger: Ledger): Promise<void> {
  const latest = (await ledger.runOf(of.arrivalId)) ?? of;
  const facts = { operation: "replay", subject: of.id };
  assertMapped(of);
  for (const run of [of, latest]) {
    if (REPLAYABLE_STATES.includes(run.state)) continue;
    throw new RejectedError("HG-RUN-011", {
      ...facts,
      message: `run ${run.id} of ${run.path} is ${run.state}: only what is at rest is replayed`,
      hint: `Wait for it, or cancel it first: \`headgate cancel ${run.id}\`.`,
    });
  }
}

/** Does not ask the drop: that is done when the run is fetched. */
async function assertInput(of: Run, ledger: Ledger, spool: CommandParts["spool"]): Promise<void> {
  for (const { id } of await attemptsBefore(of, ledger)) if (await spool.holdsInput(id)) return;
  const arrival = await ledger.arrival(of.arrivalId);
  if (arrival !== null && arrival.goneAt === null) return;
  throw new RejectedError("HG-RUN-009", {
    operation: "replay",
    subject: of.id,
    message: `the input of run ${of.id} is no longer available, and ${of.path} is no longer at its drop`,
  });
}
