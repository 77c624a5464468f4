/** `headgate trigger test`: which trigger claims each file name, and why the others do not. */
import { nearestName } from "../config/document.ts";
import { type GatewayConfig, loadGatewayConfig } from "../config/gateway-config.ts";
import { ConfigError } from "../support/errors.ts";
import { createRegistry } from "../triggers/registry.ts";
import { INGESTION_TYPES, type IngestionType } from "../wire/index.ts";
import { addCommand, type CommandFrame, configOption } from "./command.ts";
import { print, printJson, styled } from "./output.ts";

interface TestOptions {
  readonly config: string;
  readonly drop?: string;
  readonly ingestion: string;
  readonly json?: boolean;
}

export function addTrigger({ program, action }: CommandFrame): void {
  const trigger = addCommand(program, "trigger", "Triggers: the rules that claim files by their names.", [
    "headgate trigger test acme_2026-03.csv -c gateway.yaml",
  ]);
  addCommand(
    trigger,
    "test <names...>",
    "Which trigger claims each file name, and why the others do not. Exit 1 when no trigger claims one of them.",
    ["headgate trigger test acme_2026-03.csv notes.txt -c gateway.yaml"],
  )
    .addOption(configOption())
    .option("--drop <name>", "as a file at this drop (for triggers that name drops)")
    .option("--ingestion <type>", `as a file that came by ${INGESTION_TYPES.join(", ")}`, "SendViaFtp")
    .option("--json", "as JSON")
    .action(action(async (names: string[], options: TestOptions) => test(names, options)));
}

function test(names: readonly string[], options: TestOptions): number {
  const config = loadGatewayConfig(options.config);
  const ingestion = ingestionOf(options.ingestion);
  if (options.drop !== undefined) requireDrop(options.drop, config);
  const registry = createRegistry(config.triggers);
  const answers = names.map((name) => {
    const { claimed, others, verdicts } = registry.claim(name, ingestion, options.drop);
    return { name, claimedBy: claimed?.name ?? null, mapper: claimed?.mapper ?? null, others, verdicts };
  });
  if (options.json === true) printJson(answers);
  else {
    for (const { name, claimedBy, mapper, others, verdicts } of answers) {
      const claim =
        claimedBy === null
          ? styled("yellow", "no trigger claims it")
          : `${styled("green", claimedBy)} → mapper ${mapper}`;
      print(`${styled("bold", name)}  ${claim}`);
      for (const verdict of verdicts) {
        if (verdict.trigger === claimedBy) continue;
        const also = others.includes(verdict.trigger) ? "would claim it too, but an earlier one does: " : "";
        print(`  ${verdict.trigger}: ${also}${verdict.words}`);
      }
    }
  }
  return answers.every((answer) => answer.claimedBy !== null) ? 0 : 1;
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
  throw new ConfigError("HG-CLI-001", {
    operation: "read option",
    subject: "--ingestion",
    message: `${text} is not one of ${INGESTION_TYPES.join(", ")}`,
  });
}
