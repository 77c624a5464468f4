/** The commands of operators, as the command line sends them to the daemon or executes them on the ledger alone. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import { cancel } from "./commands/cancel.ts";
import type { CommandParts } from "./commands/command.ts";
import { forget } from "./commands/forget.ts";
import { pause, resume } from "./commands/pause.ts";
import { recheck, release } from "./commands/release.ts";
import { replay } from "./commands/replay.ts";

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
