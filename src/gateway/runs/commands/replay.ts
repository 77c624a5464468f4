/** Opens a new run that takes the file of an earlier one again. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import type { HeldReplacement, Ledger } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import { REPLAYABLE_STATES } from "../../states.ts";
import { assertMapped, replayBinding } from "../replay-mapper.ts";
import { hasInput } from "../steps/exclusions.ts";
import { cancellable, cancelWords } from "./cancel.ts";
import { type CommandParts, command, mustFindRun, whilePaused } from "./command.ts";

const fields = {
  run: z.string(),
  trigger: z.string().optional(),
  mapper: z.string().optional(),
  settings: z.record(z.string(), z.unknown()).optional(),
  rows: z.enum(["strict", "lenient"]).optional(),
  rejectedOnly: z.boolean(),
  overwrite: z.boolean(),
};

export const replay = command(fields, async (asked, parts) => {
  const { run: id, rejectedOnly, overwrite, by, why, trigger, mapper, settings, rows } = asked;
  const { ledger, spool, binding, live } = parts;
  const of = await mustFindRun(id, ledger);
  await assertReplayable(of, { ledger, spool });
  const bound = await replayBinding(of, { trigger, mapper, settings, rows }, binding);
  const order = { of: id, rejectedOnly, overwrite, by, ...(why === "" ? {} : { why }) };
  const run =
    of.state === "held"
      ? await whilePaused(parts, id, () => replaceHeld(of, { ...bound, replay: order }, ledger))
      : await ledger.openRun(of.arrivalId, bound.binding, bound.lane, { replay: order });
  live?.onRun();
  return { run: run.id, of: id, drop: run.drop, file: run.path };
});

async function replaceHeld({ id }: Run, next: HeldReplacement, ledger: Ledger): Promise<Run> {
  const { by, why } = next.replay;
  const { unknown, run } = await cancellable(id, ledger);
  const words = cancelWords(run, unknown, by, why === undefined ? "it is replayed" : `it is replayed: ${why}`);
  return (await ledger.replaceHeld(id, { code: "HG-RUN-010", message: words }, next)).run;
}

/** `RejectedError` while the file is in progress, and when its input is nowhere. */
export async function assertReplayable(
  of: Run,
  { ledger, spool }: Pick<CommandParts, "ledger"> & { readonly spool: Pick<CommandParts["spool"], "holdsInput"> },
): Promise<void> {
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
  if (await hasInput(of, { ledger, spool })) return;
  throw new RejectedError("HG-RUN-009", {
    operation: "replay",
    subject: of.id,
    message: `the input of run ${of.id} is no longer available, and ${of.path} is no longer at its drop`,
  });
}
