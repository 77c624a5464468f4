/** `headgate ledger`: checks the ledger, and makes and restores backups of it. */

import { systemClock } from "#core/clock.ts";
import { backupLedger, ledgerWords, restoreLedger } from "#gateway/ledger/open.ts";
import { addCommand, type CommandFrame } from "../command.ts";
import { loadOperatedConfig, operatedConfigOption } from "../operated-config.ts";
import { print, printJson, styled } from "../output.ts";
import { addLedgerCheck } from "./ledger-check.ts";
import { requireLedger } from "./ledger-view.ts";

interface LedgerOptions {
  readonly config: string;
  readonly json?: boolean;
}

export function addLedger({ command, stop, action }: CommandFrame): void {
  const ledger = command("ledger", ["headgate ledger backup /var/backups/ledger.sqlite -c gateway.yaml"]);
  addLedgerCheck(ledger, stop, action);
  addCommand(
    ledger,
    "backup <file>",
    "A consistent copy of the ledger, also while a gateway writes it. An existing file is never overwritten.",
    ["headgate ledger backup /var/backups/ledger-2026-03-01.sqlite -c gateway.yaml"],
  )
    .addOption(operatedConfigOption())
    .option("--json", "as JSON")
    .action(action((file: string, options: LedgerOptions) => backup(file, options)));
  addCommand(
    ledger,
    "restore <file>",
    "Replaces the ledger by a backup, and keeps the old ledger beside it. Refused while a gateway runs.",
    ["headgate ledger restore /var/backups/ledger-2026-03-01.sqlite -c gateway.yaml"],
  )
    .addOption(operatedConfigOption())
    .option("--json", "as JSON")
    .action(action((file: string, options: LedgerOptions) => restore(file, options)));
}

async function backup(file: string, options: LedgerOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  requireLedger(config);
  const copy = await backupLedger(config.ledger, file);
  if (options.json === true) printJson(copy);
  else print(`${copy.path}: ${copy.runs} runs, ${copy.upTo === null ? "empty" : `up to ${copy.upTo}`}`);
  return 0;
}

async function restore(file: string, options: LedgerOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const result = await restoreLedger(config.ledger, file, systemClock);
  if (options.json === true) {
    printJson(result);
    return 0;
  }
  const { restored, replaced } = result;
  print(`restored: ${ledgerWords(config.ledger)}, ${restored.runs} runs, up to ${restored.upTo ?? "nothing"}`);
  if (replaced !== null) print(`the former ledger is kept as ${replaced.path}`);
  const until = replaced?.upTo ?? null;
  if (until !== null && (restored.upTo === null || until > restored.upTo))
    print(
      styled(
        "yellow",
        `The work from ${restored.upTo ?? "the beginning"} to ${until} is not in it: files of that time that ` +
          "are still at their drops are taken as new. A service that recognises their Idempotency-Key, such as a " +
          "hub, stores nothing of them again (docs/operations.md, *Restoring a ledger*).",
      ),
    );
  return 0;
}
