/** The gateway's configuration: the sections of all components joined, and the rules between them. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { environmentVariable, type ParsedDocument, readDocument, requireKind } from "#core/config/document.ts";
import { generatedAs } from "#core/config/json-schema.ts";
import type { ConfigError } from "#core/errors.ts";
import { logOptions } from "#core/log-options.ts";
import { lookupsOptions, mappersOptions, workersOptions } from "#mapping/options.ts";
import { heldOptions, pushOptions, serviceOptions, triggerGuard } from "./delivery/options.ts";
import { type DropOptions, dropOptions, hubDropOptions } from "./drops/options.ts";
import { ledgerOptions, withLedgerFile } from "./ledger/options.ts";
import { notificationOptions, operationsOptions } from "./operations/options.ts";
import { provisionTemplate } from "./provisioning/options.ts";
import { spoolOptions } from "./spool/options.ts";
import { serviceTriggersOptions, triggerList, triggerOptions } from "./triggers/options.ts";

/** The settings of a trigger that the gateway alone reads, beside those of `triggerOptions`. */
export const gatewayTrigger = triggerOptions.extend({
  guard: triggerGuard,
  provision: provisionTemplate.optional(),
});

const gatewayServiceTriggers = serviceTriggersOptions.extend({ guard: triggerGuard });

const sections = z.strictObject({
  services: z.array(serviceOptions).min(1).describe("The services that readings are pushed to; most sites have one."),
  ledger: ledgerOptions,
  spool: spoolOptions.prefault({}).describe("The gateway's own disk space."),
  workers: workersOptions.prefault({}).describe("The worker pool that mappers run in."),
  mappers: mappersOptions.prefault({}).describe("Where mappers are found, beside the bundled ones."),
  lookups: lookupsOptions,
  drops: z.array(dropOptions).min(1).describe("The watched places."),
  triggers: triggerList(gatewayTrigger, gatewayServiceTriggers),
  push: pushOptions.prefault({}).describe("How batches are sent."),
  held: heldOptions.prefault({}).describe("Held runs, once what made them is no longer in force."),
  operations: operationsOptions.prefault({}).describe("The operator's HTTP interface."),
  notifications: notificationOptions
    .prefault({})
    .describe("Receivers of notifications about everything that needs attention, by webhook and by mail."),
  log: logOptions.prefault({}).describe("The log."),
});

const whole = sections
  .check(
    uniqueNames("services"),
    uniqueNames("drops"),
    uniqueNames("triggers"),
    uniqueNames("lookups"),
    knownReferences(),
    distinctSources(),
    workingConfirmation(),
  )
  .transform(withSplitTriggers);
export const gatewayConfig = generatedAs(whole, "gateway.schema.json");
export type GatewayConfig = Omit<z.output<typeof gatewayConfig>, "drops"> & { readonly drops: readonly DropOptions[] };

/** The configuration of a gateway inside a hub, which is made by the program; it may have no accounts yet. */
export const innerGatewayConfig = sections
  .extend({ services: z.array(serviceOptions), drops: z.array(hubDropOptions) })
  .transform(withSplitTriggers);

/** Whether it is that of the gateway inside a hub: drops, passwords and outcomes are the hub's own. */
export function isInsideHub({ drops }: Pick<GatewayConfig, "drops">): boolean {
  return drops.some(({ kind }) => kind === "hub");
}

/**
 * Loads, validates and freezes the configuration; its relative paths are relative to its own folder. `files` receives
 * the paths of all files that were read. Throws `ConfigError`.
 */
export function loadGatewayConfig(path: string, files?: Set<string>): GatewayConfig {
  return gatewayConfigOf(readDocument(path, files), path);
}

/** As `loadGatewayConfig`, of a file that was read. `missing`: as for `ParsedDocument.validated`. */
export function gatewayConfigOf(
  document: ParsedDocument,
  path: string,
  missing?: Map<string, ConfigError>,
): GatewayConfig {
  requireKind("gateway", document, path);
  const config = document.validated(gatewayConfig, missing);
  const base = dirname(resolve(path));
  const from = (relative: string) => (isAbsolute(relative) ? relative : resolve(base, relative));
  const loaded: GatewayConfig = Object.freeze({
    ...config,
    ledger: withLedgerFile(config.ledger, from),
    spool: { ...config.spool, path: from(config.spool.path) },
    mappers: { ...config.mappers, folders: config.mappers.folders.map(from) },
    lookups: config.lookups.map((lookup) => ({ ...lookup, path: from(lookup.path) })),
    drops: config.drops.map((drop) => dropWithPaths(drop, from, config.spool.path)),
    operations: { ...config.operations, console: consoleOf(config, from), tracing: tracingOf(config) },
  });
  written.set(loaded, document.written);
  if (missing !== undefined) unresolved.set(loaded, missing);
  return loaded;
}

const unresolved = new WeakMap<GatewayConfig, ReadonlyMap<string, ConfigError>>();

/** Throws the `ConfigError` of a reference in these sections that was left unresolved. */
export function requireResolved(config: GatewayConfig, ...names: readonly (keyof GatewayConfig)[]): void {
  for (const [place, error] of unresolved.get(config) ?? []) if (names.includes(JSON.parse(place)[0])) throw error;
}

function consoleOf({ operations }: GatewayConfig, from: (relative: string) => string) {
  return { ...operations.console, histories: operations.console.histories.map(from) };
}

const written = new WeakMap<GatewayConfig, object>();

/** The data of its file, with `${env:NAME}` and `${file:PATH}` as they stand there; undefined when it has no file. */
export function writtenIn(config: GatewayConfig): object | undefined {
  return written.get(config);
}

type TriggerEntry = z.output<typeof gatewayTrigger> | z.output<typeof gatewayServiceTriggers>;

/**
 * Most components need the triggers of the file alone. `position` of an entry `from: service`: how many of them come
 * before it.
 */
function withSplitTriggers<Sections extends { triggers: TriggerEntry[]; services: { name: string }[] }>({
  triggers: entries,
  ...others
}: Sections) {
  const triggers: z.output<typeof gatewayTrigger>[] = [];
  const serviceTriggers: (z.output<typeof gatewayServiceTriggers> & { service: string; position: number })[] = [];
  for (const entry of entries) {
    if (entry.from !== "service") triggers.push(entry);
    else {
      const service = entry.service ?? others.services[0]?.name ?? "";
      serviceTriggers.push({ ...entry, service, position: triggers.length });
    }
  }
  return { ...others, triggers, serviceTriggers };
}

/** The standard OpenTelemetry variables apply when the file names no endpoint. */
function tracingOf({ operations: { tracing } }: GatewayConfig) {
  const endpoint =
    tracing.endpoint ??
    environmentVariable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") ??
    environmentVariable("OTEL_EXPORTER_OTLP_ENDPOINT");
  return endpoint === undefined ? tracing : { ...tracing, endpoint };
}

function dropWithPaths(
  drop: z.output<typeof dropOptions>,
  from: (relative: string) => string,
  spool: string,
): z.output<typeof dropOptions> {
  if (drop.kind === "local") return { ...drop, path: from(drop.path) };
  if (drop.kind === "sftp") {
    const { knownHosts, approvedHosts } = drop;
    return {
      ...drop,
      ...(knownHosts === undefined ? {} : { knownHosts: from(knownHosts) }),
      approvedHosts: from(approvedHosts ?? join(spool, "known_hosts")),
    };
  }
  return drop;
}

type Parsed = Record<"services" | "drops" | "lookups", { name: string }[]> & {
  triggers: { from?: string | undefined; name?: string | undefined }[];
};

function uniqueNames(section: keyof Parsed) {
  return z.superRefine<Parsed>((config, context) => {
    const seen = new Set<string>();
    const entries: readonly { name?: string | undefined }[] = config[section];
    for (const [index, { name }] of entries.entries()) {
      if (name === undefined) continue;
      if (seen.has(name)) {
        context.addIssue({
          code: "custom",
          path: [section, index, "name"],
          message: `the name ${name} is used twice`,
        });
      }
      seen.add(name);
    }
  });
}

function knownReferences() {
  return z.superRefine<{
    services: { name: string }[];
    drops: { name: string; users?: readonly { username: string; service?: string | undefined }[] }[];
    triggers: { service?: string | undefined; drops?: readonly string[] | undefined }[];
  }>((config, context) => {
    const services = config.services.map((service) => service.name);
    const drops = config.drops.map((drop) => drop.name);
    for (const [index, { users = [] }] of config.drops.entries()) {
      for (const [nth, { username, service }] of users.entries()) {
        const path = ["drops", index, "users", nth];
        const fault = serviceFault(service, services);
        if (fault !== null) context.addIssue({ code: "custom", path: [...path, "service"], message: fault });
        if (users.findIndex((one) => one.username === username) < nth) {
          const message = `the user ${username} is named twice`;
          context.addIssue({ code: "custom", path: [...path, "username"], message });
        }
      }
    }
    for (const [index, trigger] of config.triggers.entries()) {
      const fault = serviceFault(trigger.service, services);
      if (fault !== null) context.addIssue({ code: "custom", path: ["triggers", index, "service"], message: fault });
      for (const drop of trigger.drops ?? []) {
        if (drops.includes(drop)) continue;
        context.addIssue({
          code: "custom",
          path: ["triggers", index, "drops"],
          message: `there is no drop ${drop}`,
        });
      }
    }
  });
}

function serviceFault(service: string | undefined, services: readonly string[]): string | null {
  if (service === undefined)
    return services.length > 1 ? `there are several services; name one of ${services.join(", ")}` : null;
  if (services.includes(service)) return null;
  return `there is no service ${service}; there ${services.length > 1 ? "are" : "is"} ${services.join(", ")}`;
}

/** One entry for each service, and no trigger of the file that is named like those of a service. */
function distinctSources() {
  return z.superRefine<{
    services: { name: string }[];
    triggers: { from?: string | undefined; name?: string | undefined; service?: string | undefined }[];
  }>((config, context) => {
    const sources = config.triggers
      .filter(({ from }) => from === "service")
      .map(({ service }) => service ?? config.services[0]?.name ?? "");
    const seen = new Set<string>();
    for (const [index, { from, name, service = config.services[0]?.name ?? "" }] of config.triggers.entries()) {
      const path = ["triggers", index, from === "service" ? "service" : "name"];
      const like = sources.find((one) => name?.startsWith(`${one}:`) === true);
      if (like !== undefined) {
        const message = `names that begin with ${like}: are those of the triggers at the service ${like}`;
        context.addIssue({ code: "custom", path, message });
      }
      if (from !== "service") continue;
      if (seen.has(service)) {
        const message = `the triggers of the service ${service} are named twice`;
        context.addIssue({ code: "custom", path, message });
      }
      seen.add(service);
    }
  });
}

function workingConfirmation() {
  return z.superRefine<{
    services: { name: string; webhook: { secret?: string | undefined } }[];
    push: { confirm: { by: string } };
    operations: { webhook: { publicUrl?: string | undefined; secret?: string | undefined } };
    triggers: { finishAfter?: string | undefined }[];
  }>((config, context) => {
    const { webhook } = config.operations;
    const unsigned = config.services.filter((service) => service.webhook.secret === undefined);
    if (webhook.publicUrl !== undefined && webhook.secret === undefined && unsigned.length > 0) {
      const names = unsigned.map(({ name }) => name).join(", ");
      const message =
        `webhooks are received only with a secret, here or as webhook.secret of ${names}: otherwise anyone ` +
        "could report outcomes";
      context.addIssue({ code: "custom", path: ["operations", "webhook", "secret"], message });
    }
    if (config.push.confirm.by === "webhook" && webhook.publicUrl === undefined) {
      const message = "needs operations.webhook.publicUrl, where the service can reach this gateway";
      context.addIssue({ code: "custom", path: ["push", "confirm", "by"], message });
    }
    for (const [index, trigger] of config.triggers.entries()) {
      if (trigger.finishAfter !== "confirmed" || config.push.confirm.by !== "none") continue;
      const message = "would never end, since push.confirm.by is none";
      context.addIssue({ code: "custom", path: ["triggers", index, "finishAfter"], message });
    }
  });
}
