/**
 * `headgate check`: validates the configuration, then tries every drop, the services and the spool, and prints a line
 * for each finding.
 */
import { access, constants, mkdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { ConfigError, HeadgateError, wordsOf } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { weakSecrets } from "#core/secrets.ts";
import { type GatewayConfig, isInsideHub, loadGatewayConfig } from "#gateway/config.ts";
import { createDelivery } from "#gateway/delivery/service-delivery.ts";
import { checkDrop } from "#gateway/drop-check.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isLedgerMissing, openLedger } from "#gateway/ledger/open.ts";
import { ledgerSchema } from "#gateway/ledger/options.ts";
import { heldRuns } from "#gateway/operations/held-runs.ts";
import { usedWords } from "#gateway/operations/spool-state.ts";
import { webhookAddress } from "#gateway/runs/steps/confirm-rule.ts";
import { SpoolQuota } from "#gateway/spool/quota.ts";
import { createRegistry } from "#gateway/triggers/registry.ts";
import { lookupFile } from "#mapping/contract.ts";
import { createLookups } from "#mapping/lookup.ts";
import { HUB_PARTS, probeHub } from "../platform/hub-probe.ts";
import { storedInnerConfig } from "../platform/inner-config.ts";
import { checkTemplates } from "./check-templates.ts";
import { checkTriggers } from "./check-triggers.ts";
import type { CommandFrame } from "./command.ts";
import { type Finding, findingPrinter } from "./findings.ts";
import { operatedConfigOption, operatingHub } from "./operated-config.ts";
import { printJson, sizeWords } from "./output.ts";

/** Bytes; less free space for the spool gives a warning. */
const FREE_LEAST = 1_000_000_000;

export function addCheck({ command, stop, action }: CommandFrame): void {
  command("check", [
    "headgate check -c gateway.yaml",
    "headgate check -c hub.yaml                 # store, sign-in, addresses and files of a hub, which need not run",
  ])
    .addOption(operatedConfigOption())
    .option("--json", "as JSON")
    .action(action((options: { config: string; json?: boolean }) => check(options, stop)));
}

async function check(
  options: { readonly config: string; readonly json?: boolean },
  stop: AbortSignal,
): Promise<number> {
  const hub = await operatingHub(options.config);
  const config = hub === null ? loadGatewayConfig(options.config) : null;
  const findings: Finding[] = [];
  const printOne = findingPrinter(config === null ? ["configuration", ...HUB_PARTS] : partsOf(config));
  const say = (finding: Finding) => {
    findings.push(finding);
    if (options.json !== true) printOne(finding);
  };
  say({ part: "configuration", level: "ok", what: `${options.config} is valid` });
  sayWeakSecrets(say);
  if (config !== null) await checkGateway(config, say, stop);
  else if (hub !== null && (await probeHub(hub, say))) await checkGateway(await storedInnerConfig(hub), say, stop);
  if (options.json === true) printJson(findings);
  return findings.some((finding) => finding.level === "failed") ? 1 : 0;
}

function sayWeakSecrets(say: Say): void {
  const weak = weakSecrets();
  if (weak > 0)
    say({
      part: "configuration",
      level: "warning",
      about: "secrets",
      what:
        `${weak} ${weak === 1 ? "secret is" : "secrets are"} short, or a word that Headgate itself writes: log ` +
        `and errors cannot mask ${weak === 1 ? "it" : "them"} everywhere`,
      hint: "Choose secrets of at least 6 characters that are not common words.",
    });
}

/** A gateway of its own, or the one inside a hub. */
async function checkGateway(config: GatewayConfig, say: Say, stop: AbortSignal): Promise<void> {
  await checkLookups(config, say, stop);
  const ledger = await checkLedger(config, say);
  // The storage of a hub and the hub itself are within the process of the gateway, which need not run.
  const outside = isInsideHub(config) ? { drops: [], services: [] } : config;
  try {
    const { entries } = await checkTriggers(config, ledger, say, stop);
    await checkSpool(config, ledger, say);
    const registry = createRegistry(entries);
    for (const drop of outside.drops)
      for (const finding of await checkDrop({ config, ledger, registry }, drop, stop))
        say({ part: `drop ${drop.name}`, ...finding });
  } finally {
    await ledger?.close();
  }
  for (const service of outside.services) await checkService(config, service, say, stop);
  await checkTemplates(config, say, stop);
}

function partsOf({ drops, triggers, lookups, services }: GatewayConfig): readonly string[] {
  const named = (kind: string, all: readonly { readonly name: string }[]) => all.map(({ name }) => `${kind} ${name}`);
  return [
    "configuration",
    ...named("trigger", triggers),
    ...named("lookup", lookups),
    "ledger",
    ...named("drop", drops),
    ...named("service", services),
  ];
}

type Say = (finding: Finding) => void;

async function checkLookups({ lookups }: GatewayConfig, say: Say, stop: AbortSignal): Promise<void> {
  const open = createLookups(lookups.map(lookupFile), stop);
  for (const { name, key, path } of lookups) {
    const part = `lookup ${name}`;
    try {
      say({ part, level: "ok", what: `${(await open(name)).size} rows by ${key}` });
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown;
      say({ part, level: "failed", what: `${path}: ${thrown.message}`, hint: thrown.advice });
    }
  }
}

async function checkSpool(config: GatewayConfig, ledger: Ledger | null, say: Say): Promise<void> {
  const { path } = config.spool;
  try {
    await mkdir(path, { recursive: true });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    const probe = join(path, ".check");
    await writeFile(probe, "");
    await rm(probe);
    const { bavail, bsize } = await statfs(path);
    const free = bavail * bsize;
    const what = `${path} can be written, ${sizeWords(free)} free`;
    if (free >= FREE_LEAST) say({ part: "spool", level: "ok", what });
    else say({ part: "spool", level: "warning", what, hint: "Free some space: without it no file is fetched." });
    say({ part: "spool", ...(await budgetFinding(config, ledger)) });
  } catch (thrown) {
    say({
      part: "spool",
      level: "failed",
      what: `${path} cannot be written: ${wordsOf(thrown)}`,
      hint: "Check `spool.path` and the permissions of this user.",
    });
  }
}

/** Reports the used share of the budget, and the part of it that waits for a person. */
async function budgetFinding({ spool }: GatewayConfig, ledger: Ledger | null): Promise<Omit<Finding, "part">> {
  const held = async () => (ledger === null ? new Set<string>() : await heldRuns(ledger));
  const bodies = ledger?.shared ?? null;
  const shared = bodies === null ? null : () => bodies.intake.allWaitingBytes();
  const quota = new SpoolQuota(spool.path, spool, { clock: systemClock, log: silentLog, held, shared });
  const state = await quota.state();
  const about = "budget";
  if (state.full === null) return { level: "ok", about, what: usedWords(state) };
  return { level: "warning", about, what: `${usedWords(state)}: ${state.full}` };
}

/** Checks that the ledger can be reached and read. Null where there is no ledger to check. */
async function checkLedger({ ledger: options }: GatewayConfig, say: Say): Promise<Ledger | null> {
  if (isLedgerMissing(options)) return null;
  const part = "ledger";
  try {
    const ledger = await openLedger(options, { clock: systemClock, readOnly: true });
    // A server also had to be reached, and to let the user in.
    const schema = ledgerSchema(options);
    if (schema !== null) say({ part, level: "ok", what: `it can be read, in the schema ${schema}` });
    return ledger;
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    const isMissing = thrown.code === "HG-CLI-003";
    const what = isMissing ? `${thrown.message}; the gateway creates it when it starts` : wordsOf(thrown);
    say({
      part,
      level: isMissing ? "ok" : "failed",
      what,
      ...(isMissing ? {} : { hint: thrown.advice }),
    });
    return null;
  }
}

async function checkService(
  config: GatewayConfig,
  options: GatewayConfig["services"][number],
  say: Say,
  stop: AbortSignal,
): Promise<void> {
  const part = `service ${options.name}`;
  const nothing = () => Promise.reject(new Error("check sends no batches"));
  const delivery = createDelivery(options, config.push, {
    journal: { batches: nothing, advanceBatch: nothing, acceptBatch: nothing, splitBatch: nothing, renewKey: nothing },
    segments: { append: nothing, restore: nothing },
    log: silentLog,
    webhook: webhookOf(config),
  });
  try {
    for (const finding of await delivery.probe(stop)) say({ part, ...finding });
  } catch (thrown) {
    say({ part, level: "failed", what: wordsOf(thrown) });
  } finally {
    await delivery.close();
  }
}

/** The webhook address as the gateway gives it to services; null where outcomes are not reported by webhook. */
function webhookOf({ operations, push }: GatewayConfig): { readonly url: string } | null {
  const url = webhookAddress(operations.webhook.publicUrl, `http://${operations.listen}`);
  return url === null || push.confirm.by === "read-back" ? null : { url };
}
