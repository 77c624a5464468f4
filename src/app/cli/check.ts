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
import { usedWords } from "#gateway/operations/attention.ts";
import { heldRuns } from "#gateway/operations/state-of-work.ts";
import { checkTemplate } from "#gateway/provisioning/template-check.ts";
import { LINE_END, LINE_ENDS_READ } from "#gateway/runs/steps/mapping-record.ts";
import { webhookAddress } from "#gateway/runs/steps/steps.ts";
import { SpoolQuota } from "#gateway/spool/quota.ts";
import { triggerFault } from "#gateway/trigger-report.ts";
import { lintTriggers } from "#gateway/triggers/lint.ts";
import { createRegistry } from "#gateway/triggers/registry.ts";
import {
  keptTriggers,
  readTriggers,
  type ServiceTriggerState,
  type TriggerSource,
} from "#gateway/triggers/service-triggers.ts";
import { triggerSources } from "#gateway/triggers-in-force.ts";
import { type CatalogueEntry, lookupFile } from "#mapping/contract.ts";
import { createLookups } from "#mapping/lookup.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { HUB_PARTS, probeHub } from "../platform/hub-probe.ts";
import { storedInnerConfig } from "../platform/inner-config.ts";
import type { CommandFrame } from "./command.ts";
import { joined, type TriggersKnown } from "./kept-triggers.ts";
import { operatedConfigOption, operatingHub } from "./operated-config.ts";
import { print, printJson, sizeWords, styled } from "./output.ts";

const COLOURS = { ok: "green", warning: "yellow", failed: "red" } as const;
const LEVEL_WIDTH = 7;
const PART_WIDTH_MAX = 28;
const ABOUT_WIDTH = 11;
const GAP = "  ";
/** Text narrower than this is not broken: it would become a column of words. */
const TEXT_WIDTH_MIN = 40;
const UNLIMITED = Number.POSITIVE_INFINITY;

const noTriggers = (service: string): ServiceTriggerState => ({
  service,
  listedAt: null,
  fault: null,
  emptySince: null,
  triggers: [],
});

const EMPTY_HINT =
  "If they were removed on purpose, nothing is to be done. Else restore them at the service (GET /fileTrigger).";

/** Files that show how those of a trigger end. */
const FILES_LEAST = 10;

const OWN = {
  level: "failed",
  hint: "Correct the trigger's `mapper` or `metadata`; `headgate mapper list` shows both.",
} as const;
/** Nothing of the gateway's own is wrong; its other triggers work. */
const THEIRS =
  "Its files would be quarantined. Bind its mapping in `mappings`, add the mapper, or correct `metadata` at the " +
  "service.";
const AT_HUB =
  "Its files would be quarantined. Name another mapping or correct `metadata` in the file trigger (PUT " +
  "/fileTrigger), or add the mapper (`files.mappers`).";

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

/**
 * Checks the `provision` templates of triggers for `headgate check`: whether their service knows the zones, units and
 * types.
 */
async function checkTemplates(
  { triggers, services, push }: GatewayConfig,
  say: (finding: Finding) => void,
  stop: AbortSignal,
): Promise<void> {
  for (const { name, provision, service } of triggers) {
    const access = services.find((one) => one.name === (service ?? services[0]?.name));
    if (provision === undefined || access === undefined) continue;
    const part = `trigger ${name}`;
    try {
      const faults = await checkTemplate(provision, access, { timeouts: push.timeouts, clock: systemClock }, stop);
      for (const { field, what } of faults)
        say({
          part,
          level: "failed",
          what: `provision.${field}: ${what}`,
          hint: "Missing variables of this trigger cannot be created until it is corrected.",
        });
      if (faults.length === 0)
        say({ part, level: "ok", what: `the service ${access.name} knows its provision template` });
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      const what = `the provision template cannot be compared with the service ${access.name}: ${wordsOf(thrown)}`;
      say({ part, level: "warning", what });
    }
  }
}

// Checks triggers and their mappers for `headgate check`: those of the file, and those that services list now.

/** Returns the triggers, for the checks of drops. */
export async function checkTriggers(
  config: GatewayConfig,
  ledger: Ledger | null,
  say: Say,
  stop: AbortSignal,
): Promise<TriggersKnown> {
  const services: ServiceTriggerState[] = [];
  for (const source of triggerSources(config))
    if (isInsideHub(config)) services.push(await checkKept(source, ledger, say));
    else services.push(await checkSource(source, ledger, say, stop));
  const known = joined(config, services);
  for (const finding of lintTriggers(known.triggers, config.drops))
    say({ part: `trigger ${finding.trigger}`, level: finding.level, what: finding.what, hint: finding.hint });
  await checkMappers(config, known, ledger, say);
  return known;
}

/** The triggers of an account of the hub that has the gateway inside, as it read them last. */
async function checkKept(source: TriggerSource, ledger: Ledger | null, say: Say): Promise<ServiceTriggerState> {
  const { service } = source.rule;
  const kept = ledger === null ? noTriggers(service) : await keptTriggers(ledger.triggerLists, source);
  const { listedAt, triggers } = kept;
  const what =
    listedAt === null
      ? "the hub has not read its triggers yet"
      : `${triggers.length}, as the hub read them ${listedAt}`;
  say({ part: `service ${service}`, level: "ok", about: "triggers", what });
  return kept;
}

/** The triggers that the service lists now or, when it cannot be read, those that the ledger keeps. */
async function checkSource(
  source: TriggerSource,
  ledger: Ledger | null,
  say: Say,
  stop: AbortSignal,
): Promise<ServiceTriggerState> {
  const { service } = source.rule;
  const part = `service ${service}`;
  const about = "triggers";
  try {
    const triggers = await readTriggers(source, systemClock, stop);
    const before = triggers.length > 0 || ledger === null ? null : await keptTriggers(ledger.triggerLists, source);
    if (before !== null && before.triggers.length > 0) {
      say({ part, level: "warning", about, what: emptyWords(before), hint: EMPTY_HINT });
      return before;
    }
    const firing = triggers.filter(({ isOff }) => !isOff).length;
    say({ part, level: "ok", about, what: `${triggers.length} listed, ${firing} of them active` });
    return { service, listedAt: systemClock.now().toString(), fault: null, emptySince: null, triggers };
  } catch (thrown) {
    const kept = ledger === null ? null : await keptTriggers(ledger.triggerLists, source);
    const force = kept === null || kept.listedAt === null ? "none are kept" : `those of ${kept.listedAt} are kept`;
    const what = `they cannot be read now, and ${force}: ${wordsOf(thrown)}`;
    const hint = thrown instanceof HeadgateError ? thrown.advice : undefined;
    say({ part, level: "failed", about, what, hint });
    return kept ?? noTriggers(service);
  }
}

function emptyWords({ triggers, listedAt }: ServiceTriggerState): string {
  const kept = `the ${triggers.length} of ${listedAt} stay in force`;
  return `the service lists none; ${kept} until the gateway has read it so several times (\`confirmEmpty\`)`;
}

async function checkMappers(
  config: GatewayConfig,
  { triggers, services }: TriggersKnown,
  ledger: Ledger | null,
  say: Say,
): Promise<void> {
  const catalogue = createCatalogue(config.mappers.folders);
  const means = { catalogue, isInsideHub: isInsideHub(config) };
  for (const { name, fault, isOff } of services.flatMap((one) => one.triggers))
    if (fault !== null && !isOff)
      say({ part: `trigger ${name}`, level: "warning", what: fault, hint: "Correct it at the service." });
  for (const trigger of triggers) {
    if (trigger.origin !== undefined && trigger.state !== "Active") continue;
    const part = `trigger ${trigger.name}`;
    const fault = await triggerFault({ trigger, fault: null }, means);
    if (fault === null && trigger.structure === true)
      say({ part, level: "ok", what: "the hub applies its master data" });
    else if (fault === null) {
      const version = (await catalogue.find(trigger.mapper))?.identity.version ?? "";
      say({ part, level: "ok", what: `mapper ${trigger.mapper} ${version} accepts its settings` });
      if (ledger !== null) await suggestLineEnd(trigger, await catalogue.find(trigger.mapper), ledger, say);
    } else if (trigger.origin === undefined) say({ part, ...OWN, what: fault });
    else say({ part, level: "warning", what: fault, hint: means.isInsideHub ? AT_HUB : THEIRS });
  }
  await catalogue.close();
}

/** A file that was cut off within its last value looks whole, but for the line end that the others have. */
async function suggestLineEnd(
  { name, metadata }: TriggersKnown["triggers"][number],
  mapper: CatalogueEntry | null,
  ledger: Ledger,
  say: Say,
): Promise<void> {
  const { properties = {} } = (mapper?.settingsSchema ?? {}) as { readonly properties?: object };
  if (!("lineEnd" in properties) || metadata["lineEnd"] !== undefined) return;
  const findings = await ledger.acceptedFindings(name, { limit: LINE_ENDS_READ });
  if (findings.length < FILES_LEAST || findings.flat().some(({ kind }) => kind === LINE_END)) return;
  say({
    part: `trigger ${name}`,
    level: "ok",
    about: "line end",
    what: `the last lines of its newest ${findings.length} files have their line end`,
    hint: "Set `lineEnd: required` in its `metadata`, so that a file that was cut off within a value is refused.",
  });
}

// Formats findings of `headgate check` as lines of a terminal: level, part, subject and finding, each in its column.

export interface Finding {
  /** `drop meters`, `service main`, `spool`, … */
  readonly part: string;
  readonly level: "ok" | "warning" | "failed";
  /** A word or two; absent where the part has only one subject. */
  readonly about?: string | undefined;
  readonly what: string;
  readonly hint?: string | undefined;
}

/** Prints findings as they come. `parts` are the expected ones, so that the column widths are known beforehand. */
function findingPrinter(parts: readonly string[]): (finding: Finding) => void {
  const { isTTY, columns } = process.stdout;
  const widest = Math.min(PART_WIDTH_MAX, Math.max(0, ...parts.map((part) => part.length)));
  // On a terminal each part is printed once, above its findings; a pipe gets one line for each finding, so that it
  // can be searched.
  const layout = isTTY ? { partWidth: 0, width: columns } : { partWidth: widest, width: UNLIMITED };
  let part = "";
  return (finding) => {
    if (isTTY && finding.part !== part) print(styled("bold", finding.part));
    part = finding.part;
    for (const [at, line] of findingLines(finding, layout).entries())
      print(at === 0 ? line.replace(finding.level, styled(COLOURS[finding.level], finding.level)) : line);
  };
}

/** `partWidth` 0 leaves the part out. */
export function findingLines(
  { level, part, about = "", what, hint }: Finding,
  { partWidth, width }: { readonly partWidth: number; readonly width: number },
): readonly string[] {
  const columns = [
    level.padEnd(LEVEL_WIDTH),
    ...(partWidth === 0 ? [] : [part.padEnd(partWidth)]),
    about.padEnd(ABOUT_WIDTH),
    "",
  ];
  const head = (partWidth === 0 ? GAP : "") + columns.join(GAP);
  const indent = " ".repeat(head.length);
  const room = Math.max(TEXT_WIDTH_MIN, width - head.length);
  const [first = "", ...others] = broken(what, room);
  const hints = hint === undefined ? [] : broken(`→ ${hint}`, room);
  return [head + first, ...[...others, ...hints].map((line) => indent + line)];
}

/** Broken at spaces; a word that is too long for a line stays whole, so that it can be copied. */
function broken(text: string, room: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
