/** `headgate check`: validates the configuration, then tries every drop, the services and the spool; one line each with what was found. */
import { access, constants, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { basename } from "node:path/posix";
import { type GatewayConfig, loadGatewayConfig } from "../config/gateway-config.ts";
import { createDelivery } from "../delivery/service-delivery.ts";
import { createDrop } from "../drops/create.ts";
import { InitialForecast } from "../drops/initial.ts";
import { createCatalogue } from "../mapping/catalogue.ts";
import { createLookups, lookupFile } from "../mapping/lookup.ts";
import { ConfigError, wordsOf } from "../support/errors.ts";
import { silentLog } from "../support/log.ts";
import { lintTriggers } from "../triggers/lint.ts";
import { createRegistry } from "../triggers/registry.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { print, printJson, styled } from "./output.ts";

interface Finding {
  readonly part: string;
  readonly level: "ok" | "warning" | "failed";
  readonly what: string;
  readonly hint?: string | undefined;
}

const COLOURS = { ok: "green", warning: "yellow", failed: "red" } as const;

export function addCheck({ program, stop, action }: CommandFrame): void {
  addCommand(
    program,
    "check",
    "Validates the configuration, then tries every drop, the services and the spool.",
    ["headgate check -c gateway.yaml"],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--json", "as JSON")
    .action(action((options: { config: string; json?: boolean }) => check(options, stop)));
}

async function check(
  options: { readonly config: string; readonly json?: boolean },
  stop: AbortSignal,
): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const findings: Finding[] = [];
  const say = (finding: Finding) => {
    findings.push(finding);
    if (options.json !== true) printFinding(finding);
  };
  say({ part: "configuration", level: "ok", what: `${options.config} is valid` });
  for (const finding of lintTriggers(config.triggers, config.drops))
    say({ part: `trigger ${finding.trigger}`, level: finding.level, what: finding.what, hint: finding.hint });
  await checkMappers(config, say);
  await checkLookups(config, say, stop);
  await checkSpool(config, say);
  for (const drop of config.drops) await checkDrop(config, drop, say, stop);
  for (const service of config.services) await checkService(config, service, say, stop);
  if (options.json === true) printJson(findings);
  return findings.some((finding) => finding.level === "failed") ? 1 : 0;
}

function printFinding({ part, level, what, hint }: Finding): void {
  print(`${styled(COLOURS[level], level.padEnd(7))} ${part}: ${what}`);
  if (hint !== undefined && level !== "ok") print(`        ${hint}`);
}

type Say = (finding: Finding) => void;

async function checkMappers(config: GatewayConfig, say: Say): Promise<void> {
  const catalogue = createCatalogue(config.mappers.folders);
  for (const trigger of config.triggers) {
    const part = `trigger ${trigger.name}`;
    try {
      const mapper = await catalogue.find(trigger.mapper);
      const fault =
        mapper === null ? `there is no mapper ${trigger.mapper}` : mapper.checkSettings(trigger.metadata);
      if (fault === null)
        say({
          part,
          level: "ok",
          what: `mapper ${trigger.mapper} ${mapper?.identity.version ?? ""} takes its settings`,
        });
      else
        say({
          part,
          level: "failed",
          what: fault,
          hint: "Correct the trigger's `mapper` or `metadata`; `headgate mapper list` shows both.",
        });
    } catch (thrown) {
      say({ part, level: "failed", what: wordsOf(thrown) });
    }
  }
}

async function checkLookups({ lookups }: GatewayConfig, say: Say, stop: AbortSignal): Promise<void> {
  const open = createLookups(lookups.map(lookupFile), stop);
  for (const { name, key, path } of lookups) {
    const part = `lookup ${name}`;
    try {
      say({ part, level: "ok", what: `${(await open(name)).size} rows by ${key}` });
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown;
      say({ part, level: "failed", what: `${path}: ${thrown.message}`, hint: thrown.hint });
    }
  }
}

async function checkSpool(config: GatewayConfig, say: Say): Promise<void> {
  const { path } = config.spool;
  try {
    await mkdir(path, { recursive: true });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    const probe = join(path, ".check");
    await writeFile(probe, "");
    await rm(probe);
    say({ part: "spool", level: "ok", what: `${path} can be written` });
  } catch (thrown) {
    say({
      part: "spool",
      level: "failed",
      what: `${path} cannot be written: ${wordsOf(thrown)}`,
      hint: "Check `spool.path` and the rights of this user.",
    });
  }
}

async function checkDrop(
  config: GatewayConfig,
  options: GatewayConfig["drops"][number],
  say: Say,
  stop: AbortSignal,
): Promise<void> {
  const part = `drop ${options.name}`;
  const intake = {
    spool: config.spool.path,
    defaultService: "",
    accountOf: () => undefined,
    refusalOf: () => null,
  };
  const drop = createDrop(options, { log: silentLog, intake });
  try {
    const found = await drop.probe(stop);
    for (const finding of found) say({ part, ...finding });
    if (options.kind === "http" || found.some((finding) => finding.level === "failed")) return;
    const registry = createRegistry(config.triggers);
    const byTrigger = new Map<string, number>();
    const forecast = new InitialForecast(options.initial, drop);
    for await (const entry of drop.list(stop)) {
      forecast.add(entry);
      const claimed = registry.claim(basename(entry.path), "SendViaFtp", options.name).claimed?.name ?? "";
      byTrigger.set(claimed, (byTrigger.get(claimed) ?? 0) + 1);
    }
    const words = [...byTrigger].map(([trigger, count]) =>
      trigger === "" ? `${count} no trigger claims` : `${count} would match trigger ${trigger}`,
    );
    say({
      part,
      level: "ok",
      what: words.length === 0 ? "no files lie there now" : words.join(", "),
    });
    if (options.initial !== "process") say({ part, level: "ok", what: forecast.words() });
  } catch (thrown) {
    say({
      part,
      level: "failed",
      what: wordsOf(thrown),
      hint: thrown instanceof Error && "hint" in thrown ? String(thrown.hint) : undefined,
    });
  } finally {
    await drop.close();
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
    journal: { batches: nothing, advanceBatch: nothing, splitBatch: nothing },
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

/** As the gateway would name it to services; null where outcomes are not told by webhook. */
function webhookOf({ operations, push }: GatewayConfig): { readonly url: string } | null {
  const { publicUrl } = operations.webhook;
  return publicUrl === undefined || push.confirm.by === "read-back" ? null : { url: publicUrl };
}
