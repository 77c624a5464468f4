/** `headgate trigger test`: which trigger claims each file name, and why the others do not. */

import { ConfigError, invalidOption } from "#core/errors.ts";
import { nearestName } from "#core/nearest-name.ts";
import { type GatewayConfig, isInsideHub } from "#gateway/config.ts";
import { IN_ZIP, type NameTest, testName } from "#gateway/name-test.ts";
import { triggerFault } from "#gateway/trigger-report.ts";
import { createRegistry, type Trigger } from "#gateway/triggers/registry.ts";
import type { ServiceTriggerState } from "#gateway/triggers/service-triggers.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { INGESTION_TYPES, type IngestionType } from "#wire/trigger.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { knownTriggers } from "./kept-triggers.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printJson, printTable, styled } from "./output.ts";

interface TestOptions {
  readonly config: string;
  readonly drop?: string;
  readonly ingestion: string;
  readonly json?: boolean;
}

export function addTrigger({ command, action }: CommandFrame): void {
  const trigger = command("trigger", ["headgate trigger test acme_2026-03.csv -c gateway.yaml"]);
  addCommand(
    trigger,
    "test <names...>",
    "Which trigger claims each file name, and why the others do not. Exit 1 when no trigger claims one of them. The " +
      "files in a ZIP are named for themselves.",
    ["headgate trigger test acme_2026-03.csv notes.txt -c gateway.yaml"],
  )
    .addOption(operatedConfigOption())
    .option("--drop <name>", "as a file at this drop (for triggers that name drops)")
    .option("--ingestion <type>", `as a file that came by ${INGESTION_TYPES.join(", ")}`, "SendViaFtp")
    .option("--json", "as JSON")
    .action(action((names: string[], options: TestOptions) => test(names, options)));
  addCommand(
    trigger,
    "list",
    "The triggers in force, in their order: those of the file, and those of services as they were read last.",
    ["headgate trigger list -c gateway.yaml"],
  )
    .addOption(operatedConfigOption())
    .option("--json", "as JSON")
    .action(action((options: ListOptions) => list(options)));
}

interface ListOptions {
  readonly config: string;
  readonly json?: boolean;
}

async function list(options: ListOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const { entries, services } = await knownTriggers(config);
  const catalogue = createCatalogue(config.mappers.folders);
  const means = { catalogue, isInsideHub: isInsideHub(config) };
  const listed = [];
  for (const entry of entries) {
    if ("unknown" in entry) listed.push({ name: entry.name, problem: entry.unknown });
    else listed.push({ ...factsOf(entry), problem: await triggerFault({ trigger: entry, fault: null }, means) });
  }
  await catalogue.close();
  if (options.json === true) printJson({ triggers: listed, services: services.map(serviceFacts) });
  else {
    printTable(
      ["trigger", "state", "comes by", "mapper", "problem"],
      listed.map((one) =>
        "mapper" in one
          ? [one.name, one.state, one.ingestionType, one.mapper, one.problem ?? ""]
          : [one.name, "", "", "", one.problem],
      ),
    );
    for (const { service, listedAt } of services)
      print(`the triggers of the service ${service}: ${listedAt === null ? "not known yet" : `listed at ${listedAt}`}`);
  }
  return 0;
}

function factsOf({ name, state, ingestionType, mapper, origin, service, ...trigger }: Trigger) {
  const { fileNamePatternMatches, fileTriggerCombination } = trigger;
  const from = origin === undefined ? {} : { mapping: origin.mapping, title: origin.title };
  return { name, state, ingestionType, mapper, service, ...from, fileNamePatternMatches, fileTriggerCombination };
}

function serviceFacts({ service, listedAt, triggers }: ServiceTriggerState) {
  return { service, listedAt, count: triggers.length };
}

async function test(names: readonly string[], options: TestOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const ingestion = ingestionOf(options.ingestion);
  if (options.drop !== undefined) requireDrop(options.drop, config);
  const registry = createRegistry((await knownTriggers(config)).entries);
  const asked = { drop: options.drop, ingestion };
  const answers = names.map((name) => testName(name, asked, { registry, drops: config.drops }));
  if (options.json === true) printJson(answers);
  else for (const answer of answers) printAnswer(answer);
  return answers.every(({ claimedBy, container }) => claimedBy !== null || container === IN_ZIP) ? 0 : 1;
}

function printAnswer({ name, forms, container, claimedBy, mapper, others, verdicts }: NameTest): void {
  const claim =
    container === IN_ZIP
      ? IN_ZIP
      : claimedBy === null
        ? styled("yellow", "no trigger claims it")
        : `${styled("green", claimedBy)} → mapper ${mapper}`;
  print(`${styled("bold", name)}  ${container === null || container === IN_ZIP ? "" : `${container}: `}${claim}`);
  if (forms !== null) print(`  ${forms}`);
  for (const verdict of verdicts) {
    if (verdict.trigger === claimedBy) continue;
    const also = others.includes(verdict.trigger) ? "would claim it too, but an earlier one does: " : "";
    print(`  ${verdict.trigger}: ${also}${verdict.words}`);
  }
}

function requireDrop(name: string, config: GatewayConfig): void {
  const known = config.drops.map((drop) => drop.name);
  if (known.includes(name)) return;
  const nearest = nearestName(name, known);
  throw new ConfigError("HG-CLI-001", {
    operation: "read option",
    subject: "--drop",
    message: `there is no drop ${name}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`,
    hint: `Name one of the configured drops: ${known.join(", ")}.`,
  });
}

function ingestionOf(text: string): IngestionType {
  const known = INGESTION_TYPES.find((type) => type.toLowerCase() === text.toLowerCase());
  if (known !== undefined) return known;
  throw invalidOption("--ingestion", `${text} is not one of ${INGESTION_TYPES.join(", ")}`);
}
