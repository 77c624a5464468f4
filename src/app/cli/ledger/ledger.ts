/** `headgate ledger`: checks the ledger, and makes and restores backups of it. */

import { posix } from "node:path";
import type { Command } from "commander";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { type GatewayConfig, requireResolved } from "#gateway/config.ts";
import { createDrop } from "#gateway/drops/create.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { archivedSinceMs, archiveFolders, keptArchives } from "#gateway/drops/paths.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { backupLedger, ledgerWords, openLedger, restoreLedger } from "#gateway/ledger/open.ts";
import type { FileEntry } from "#gateway/model.ts";
import { type ArchiveCheckParts, checkArchives } from "#gateway/runs/archive-check.ts";
import { checkAll, type Finding } from "#gateway/runs/consistency-check.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { addCommand, type CommandFrame } from "../command.ts";
import { loadOperatedConfig, operatedConfigOption } from "../operated-config.ts";
import { print, printJson, styled } from "../output.ts";
import { requireLedger } from "./ledger-view.ts";

interface LedgerOptions {
  readonly config: string;
  readonly json?: boolean;
}

/** For one query to a drop. */
const STAT_MS = 30_000;

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

interface CheckOptions {
  readonly config: string;
  readonly repair?: boolean;
  readonly drops: boolean;
  readonly json?: boolean;
}

type DropOptions = GatewayConfig["drops"][number];

/** `headgate ledger check`: whether ledger, spool and drops agree; `--repair` corrects differences where possible. */
function addLedgerCheck(ledger: Command, stop: AbortSignal, action: CommandFrame["action"]): void {
  addCommand(
    ledger,
    "check",
    "Checks that ledger, spool and drops agree, also beside a running gateway. Exit 1 when a fault was not repaired.",
    ["headgate ledger check -c gateway.yaml", "headgate ledger check -c gateway.yaml --repair"],
  )
    .addOption(operatedConfigOption())
    .option("--repair", "repair faults where possible; only while no gateway runs")
    .option("--no-drops", "do not query the drops for files that only they have")
    .option("--json", "as JSON")
    .action(action((options: CheckOptions) => check(options, stop)));
}

async function check(options: CheckOptions, stop: AbortSignal): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  requireLedger(config);
  if (options.drops) requireResolved(config, "drops");
  const repair = options.repair === true;
  const ledger = await openLedger(config.ledger, { clock: systemClock, readOnly: !repair });
  const drops = new Map<string, Promise<Drop>>();
  const findings: Finding[] = [];
  try {
    const spool = await openSpool(config.spool);
    const stat = (name: string, path: string) => {
      const asked = options.drops ? config.drops.find((one) => one.name === name) : undefined;
      // The storage of a hub is known to the hub alone.
      if (asked === undefined || asked.kind === "hub") return null;
      if (asked.kind === "http") return statBody(ledger, name, path);
      return dropOf(asked, drops).then((drop) => drop.stat(path, AbortSignal.timeout(STAT_MS)));
    };
    for await (const finding of checkAll({ ledger, spool, stat, repair }, stop)) {
      findings.push(finding);
      if (options.json !== true) printFinding(finding);
    }
    if (options.drops) {
      const parts = await archiveParts(config, drops, ledger, spool.root, repair);
      for await (const finding of checkArchives(parts, stop)) {
        findings.push(finding);
        if (options.json !== true) printFinding(finding);
      }
    }
  } finally {
    for (const drop of drops.values()) await (await drop).close();
    await ledger.close();
  }
  const left = findings.filter(({ repaired }) => !repaired);
  if (options.json === true) printJson(findings);
  else if (findings.length === 0) print("ledger, spool and drops agree");
  else print(`${findings.length} found, ${findings.length - left.length} repaired${advice(left, repair)}`);
  return left.length === 0 ? 0 : 1;
}

async function archiveParts(
  config: GatewayConfig,
  drops: Map<string, Promise<Drop>>,
  ledger: Ledger,
  scratch: string,
  repair: boolean,
): Promise<ArchiveCheckParts> {
  const asked = config.drops.filter(({ kind }) => kind !== "http" && kind !== "hub");
  const archives = async (name: string) => {
    const now = asked.filter((one) => one.name === name).flatMap(({ finish }) => archiveFolders(finish));
    return [...new Set([...now, ...(await ledger.finishedFiles.archives(name))])];
  };
  const isExpired = (name: string, place: string) => {
    const kept = asked.filter((one) => one.name === name).flatMap(({ finish }) => [...keptArchives(finish)]);
    const sinceMs = archivedSinceMs(place) ?? Number.POSITIVE_INFINITY;
    const nowMs = systemClock.now().epochMilliseconds;
    return kept.some(([folder, keepMs]) => place.startsWith(posix.join(folder, "/")) && sinceMs + keepMs <= nowMs);
  };
  const opened = await Promise.all(asked.map((one) => dropOf(one, drops)));
  return { ledger, archives, isExpired, scratch, repair, drops: opened };
}

/** The status of a body in the ledger. Null for an intake that has its files in the spool. */
function statBody({ shared }: Ledger, drop: string, path: string): Promise<FileEntry | null> | null {
  if (shared === null) return null;
  return shared.intake.stat(drop, path).then((found) => (found === null ? null : { path, ...found }));
}

function dropOf(options: DropOptions, drops: Map<string, Promise<Drop>>): Promise<Drop> {
  const drop = drops.get(options.name) ?? createDrop(options, { log: silentLog });
  drops.set(options.name, drop);
  return drop;
}

function advice(left: readonly Finding[], repair: boolean): string {
  if (left.length === 0) return "";
  if (!repair && left.some(({ remedy }) => remedy !== null))
    return "; `--repair` repairs faults where possible, while no gateway runs";
  return left.some(({ about }) => about === "ledger")
    ? "; `headgate ledger restore FILE` replaces a damaged ledger by a backup"
    : "";
}

function printFinding({ about, subject, what, remedy, repaired }: Finding): void {
  const state = repaired ? styled("green", "repaired") : styled("red", "wrong");
  print(`${state}  ${about}: ${subject}: ${what}${remedy === null ? "" : ` (${remedy})`}`);
}
