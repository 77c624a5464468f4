/** The commands of operators, as the command line sends them to the daemon or executes them on the ledger alone. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import { cancel } from "./commands/cancel.ts";
import { type CommandParts, command } from "./commands/command.ts";
import { recheck, release } from "./commands/release.ts";
import { replay } from "./commands/replay.ts";

/** Has the ledger forget a file. */
const forget = command(
  { drop: z.string(), path: z.string() },
  async ({ drop, path, by, why }, { ledger, log, live }) => {
    const forgotten = await ledger.forget(drop, path, { by, why });
    if (forgotten.arrivals === 0)
      throw new RejectedError("HG-CLI-002", {
        operation: "forget",
        subject: path,
        message: `the ledger knows no file ${path} at the drop ${drop}`,
      });
    log.warn({ drop, path, by, why, ...forgotten }, "the ledger forgot a file");
    live?.dropChanged(drop);
    return { drop, path, ...forgotten };
  },
);

// Pauses a drop or a trigger, and resumes it.

const fields = { kind: z.enum(["drop", "trigger"]), name: z.string() };

const pause = command(fields, async ({ kind, name, by, why }, { pauses, live }) => {
  const set = await pauses.set({ kind, name, by, why });
  if (kind === "drop") live?.dropChanged(name);
  return set;
});

const resume = command(fields, async ({ kind, name }, { pauses, live }) => {
  const wasPaused = await pauses.end(kind, name);
  if (kind === "drop") live?.dropChanged(name);
  else live?.triggersChanged();
  return { wasPaused };
});

const COMMANDS = { cancel, pause, resume, replay, release, recheck, forget };

type Commands = typeof COMMANDS;
type Order = keyof Commands;
export type OperatorCommand = { [One in Order]: { order: One } & z.output<Commands[One]["fields"]> }[Order];
export type CommandResults = { readonly [One in Order]: Awaited<ReturnType<Commands[One]["perform"]>> };

const bodies = Object.entries(COMMANDS).map(([order, { fields }]) =>
  (fields as z.ZodObject).extend({ order: z.literal(order) }),
);
const operatorCommand: z.ZodType<OperatorCommand> = z.discriminatedUnion("order", bodies as never);

/** Throws `RejectedError` when the command is unknown or cannot be executed. */
export async function executeCommand(body: unknown, parts: CommandParts): Promise<CommandResults[Order]> {
  const { data: asked, error } = operatorCommand.safeParse(body);
  if (error !== undefined)
    throw new RejectedError("HG-OPS-002", {
      operation: "execute command",
      subject: "gateway",
      message: `this gateway does not know the command: ${error.issues[0]?.message ?? ""}`,
      hint: "Are the command and the gateway of the same version?",
    });
  parts.log.info({ ...asked }, "an operator sent a command");
  return await COMMANDS[asked.order].perform(asked as never, parts);
}
