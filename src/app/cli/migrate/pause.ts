/** `migrate pause` and `migrate resume`: by the id of a migration, from any process. */
import type { Command } from "commander";
import { RejectedError } from "#core/errors.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { isLedgerOwned } from "#gateway/ledger/open.ts";
import { requestPause } from "#gateway/migration/actions.ts";
import { findMigration } from "#gateway/migration/report/reports.ts";
import { migrationLedger } from "#gateway/migration/request.ts";
import { addCommand, type CommandFrame } from "../command.ts";
import { authorOf, type CommandOptions } from "../command-client.ts";
import { print } from "../output.ts";

export function addPauseAndResume<Options>(
  migrate: Command,
  { action }: Pick<CommandFrame, "stop" | "action">,
  resume: (id: string, options: Options) => Promise<number>,
): void {
  addCommand(
    migrate,
    "resume <id>",
    "Resumes a migration by its id, with the limits that it had, unless others are given (`none`: without).",
    ["headgate migrate resume 3f2a -c gateway.yaml --between '20:00-06:00 Europe/Paris'"],
  ).action(action((id: string, _none: unknown, own: Command) => resume(id, own.optsWithGlobals<object>() as Options)));
  addCommand(migrate, "pause <id>", "Stops a running migration from outside: running batches end first.", [
    "headgate migrate pause 3f2a -c gateway.yaml --reason 'the service is maintained'",
  ]).action(
    action(async (id: string, _none: unknown, own: Command) => {
      const options = own.optsWithGlobals<CommandOptions>();
      await pauseMigration(loadGatewayConfig(options.config).spool.path, id, authorOf(options));
      print("it stops when its running batches have ended; `headgate migrate resume` continues it");
      return 0;
    }),
  );
}

/** Throws `RejectedError` when it does not run. */
export async function pauseMigration(
  spool: string,
  id: string,
  pause: { readonly by: string; readonly why: string },
): Promise<void> {
  const { folder, id: whole } = await findMigration(spool, id);
  if (!isLedgerOwned(migrationLedger(folder)))
    throw new RejectedError("HG-MIGR-006", {
      operation: "pause migration",
      subject: whole,
      message: "the migration does not run",
    });
  await requestPause(folder, pause);
}
