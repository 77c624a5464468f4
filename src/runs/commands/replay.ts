/** Opens a new run that takes the file of an earlier one again. */
import { z } from "zod";
import type { Ledger } from "../../ledger/ledger.ts";
import { finishedPlace, type Run } from "../../model.ts";
import { REPLAYABLE_STATES } from "../../states.ts";
import { RejectedError } from "../../support/errors.ts";
import { assertMapped, replayBinding } from "../replay-mapper.ts";
import { attemptsBefore } from "../steps/exclusions.ts";
import { cancelNow } from "./cancel.ts";
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
  // Nothing of a held run was sent: the replay replaces it.
  if (of.state === "held") await whilePaused(parts, id, () => cancelNow(id, by, replacedWords(why), ledger));
  const run = await ledger.openRun(of.arrivalId, bound.binding, bound.lane, {
    replay: { of: id, rejectedOnly, overwrite, by, ...(why === "" ? {} : { why }) },
  });
  live?.onRun();
  return { run: run.id, of: id, drop: run.drop, file: run.path };
});

function replacedWords(why: string): string {
  return why === "" ? "it is replayed" : `it is replayed: ${why}`;
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
  await assertInput(of, ledger, spool);
}

/** Does not ask the drop: that is done when the run is fetched. */
async function assertInput(of: Run, ledger: Ledger, spool: Pick<CommandParts["spool"], "holdsInput">): Promise<void> {
  for (const { id } of await attemptsBefore(of, ledger)) if (await spool.holdsInput(id)) return;
  const arrival = await ledger.arrival(of.arrivalId);
  if (arrival !== null && arrival.goneAt === null) return;
  if (finishedPlace(of.path, await ledger.events(of.arrivalId)) !== null) return;
  throw new RejectedError("HG-RUN-009", {
    operation: "replay",
    subject: of.id,
    message: `the input of run ${of.id} is no longer available, and ${of.path} is no longer at its drop`,
  });
}
