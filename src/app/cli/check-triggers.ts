/** Checks triggers and their mappers for `headgate check`: those of the file, and those that services list now. */

import { systemClock } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { type GatewayConfig, isInsideHub } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { LINE_END, LINE_ENDS_READ } from "#gateway/runs/steps/mapping-record.ts";
import { triggerFault } from "#gateway/trigger-report.ts";
import { lintTriggers } from "#gateway/triggers/lint.ts";
import {
  keptTriggers,
  readTriggers,
  type ServiceTriggerState,
  type TriggerSource,
} from "#gateway/triggers/service-triggers.ts";
import { triggerSources } from "#gateway/triggers-in-force.ts";
import type { CatalogueEntry } from "#mapping/contract.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import type { Finding } from "./findings.ts";
import { joined, type TriggersKnown } from "./kept-triggers.ts";

type Say = (finding: Finding) => void;

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

const noTriggers = (service: string): ServiceTriggerState => ({
  service,
  listedAt: null,
  fault: null,
  emptySince: null,
  triggers: [],
});

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

const EMPTY_HINT =
  "If they were removed on purpose, nothing is to be done. Else restore them at the service (GET /fileTrigger).";

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

/** Files that show how those of a trigger end. */
const FILES_LEAST = 10;

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
