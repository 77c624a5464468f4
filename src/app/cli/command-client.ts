/** Sends a person's command to the running gateway, or applies it to the ledger when no gateway runs. */

import { systemClock } from "#core/clock.ts";
import { ConfigError, type ErrorCode, RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { REGISTER } from "#core/register.ts";
import { type GatewayConfig, isInsideHub } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { ledgerWords, openLedger } from "#gateway/ledger/open.ts";
import { ledgerFile, nodeName } from "#gateway/ledger/options.ts";
import type { Run } from "#gateway/model.ts";
import { endpointFilePath, readEndpointFile } from "#gateway/operations/endpoint-file.ts";
import { type CommandResults, executeCommand, type OperatorCommand } from "#gateway/runs/commands.ts";
import { openLookupStore } from "#gateway/runs/lookups.ts";
import { Pauses } from "#gateway/runs/pauses.ts";
import type { BindingParts } from "#gateway/runs/replay-mapper.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { laneOf } from "#gateway/triggers/registry.ts";
import type { HubOptions } from "#hub/options.ts";
import { userName } from "./command.ts";
import { triggersOf } from "./kept-triggers.ts";
import { requireLedger } from "./ledger/ledger-view.ts";

/** A step that has to end first may take a moment. */
const RESPONSE_MS = 60_000;

/** Options of every command. */
export interface CommandOptions {
  readonly config: string;
  readonly by?: string;
  readonly reason?: string;
  readonly json?: boolean;
}

/** The user who runs the command, and the reason. */
export function authorOf(options: CommandOptions): { readonly by: string; readonly why: string } {
  return { by: options.by ?? userName(), why: options.reason ?? "" };
}

export interface Given<Answer> {
  readonly answer: Answer;
  /** Null when no gateway runs: the next start applies the command. */
  readonly daemon: string | null;
}

/**
 * `hub`: the one that has the gateway inside. Throws the gateway's error, and `TransientError` when a gateway has the
 * ledger and does not respond.
 */
export async function sendCommand<Asked extends OperatorCommand>(
  config: GatewayConfig,
  asked: Asked,
  hub: HubOptions | null = null,
): Promise<Given<CommandResults[Asked["order"]]>> {
  requireLedger(config);
  const ledger = await ownLedger(config);
  if (ledger === null) return queryDaemon(config, asked);
  try {
    const spool = await openSpool(config.spool);
    const binding = await bindingParts(config, spool.root, ledger);
    const isRemoved = async (run: Run) =>
      hub !== null && (await (await import("../platform/stored-files.ts")).isRemovedFile(hub, run));
    const parts = { ledger, spool, binding, pauses: await Pauses.read(ledger), log: silentLog, isRemoved };
    const answer = await executeCommand(asked, parts);
    return { answer: answer as CommandResults[Asked["order"]], daemon: null };
  } finally {
    await ledger.close();
  }
}

/** The configuration that replays are bound to, as it is now. */
export async function bindingParts(
  config: GatewayConfig,
  spoolRoot: string,
  { triggerLists, shared }: Pick<Ledger, "triggerLists" | "shared">,
): Promise<BindingParts> {
  const { triggers } = await triggersOf(config, { triggerLists });
  return {
    triggers,
    lookups: await openLookupStore(config.lookups, spoolRoot, systemClock, shared?.content),
    knowsZones: isInsideHub(config),
    limits: { pointsMax: config.push.batch.points, bytesMax: config.push.batch.bytes },
    laneOf,
  };
}

/** Null while a gateway owns it, or the gateway of this host shares it with others. */
async function ownLedger(config: GatewayConfig): Promise<Ledger | null> {
  if (nodeName(config.ledger) !== null && (await daemonResponds(config))) return null;
  try {
    return await openLedger(config.ledger, { clock: systemClock });
  } catch (thrown) {
    if (thrown instanceof ConfigError && thrown.code === "HG-LEDG-001") return null;
    throw thrown;
  }
}

async function daemonResponds(config: GatewayConfig): Promise<boolean> {
  const endpoint = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  if (endpoint === null) return false;
  try {
    return (await fetch(`${endpoint.url}/health/live`, { signal: AbortSignal.timeout(RESPONSE_MS) })).ok;
  } catch {
    // The gateway was killed, and its endpoint file stayed.
    return false;
  }
}

async function queryDaemon<Asked extends OperatorCommand>(
  config: GatewayConfig,
  asked: Asked,
): Promise<Given<CommandResults[Asked["order"]]>> {
  const endpoint = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  if (endpoint === null)
    throw new ConfigError("HG-OPS-002", {
      operation: `order ${asked.order}`,
      subject: ledgerWords(config.ledger),
      message: "a gateway has the ledger, and its secret beside the ledger cannot be read by this user",
      hint: "Run the command as the user of the gateway.",
    });
  let answer: Response;
  try {
    answer = await fetch(`${endpoint.url}/operations/orders`, {
      method: "POST",
      headers: { authorization: `Bearer ${endpoint.secret}`, "content-type": "application/json" },
      body: JSON.stringify(asked),
      redirect: "error",
      signal: AbortSignal.timeout(RESPONSE_MS),
    });
  } catch (cause) {
    throw new TransientError("HG-OPS-002", {
      operation: `order ${asked.order}`,
      subject: endpoint.url,
      message: `a gateway has the ledger, and does not respond at ${endpoint.url}: ${wordsOf(cause)}`,
      cause,
    });
  }
  const said: unknown = await answer.json();
  if (!answer.ok) throw refusalOf(said, asked.order, endpoint.url);
  return { answer: said as CommandResults[Asked["order"]], daemon: endpoint.url };
}

/** The error as it was thrown in the daemon. */
function refusalOf(said: unknown, order: string, url: string): RejectedError {
  const { code, operation, subject, detail, hint } = said as Record<string, string | undefined>;
  const known = code !== undefined && Object.hasOwn(REGISTER, code) ? (code as ErrorCode) : "HG-OPS-002";
  return new RejectedError(known, {
    operation: operation ?? `order ${order}`,
    subject: subject ?? url,
    ...(detail === undefined ? {} : { message: detail }),
    ...(hint === undefined ? {} : { hint }),
  });
}

/** Printed after the result: without a gateway the command has no effect yet. */
export function daemonWords(daemon: string | null): string {
  return daemon === null ? "No gateway runs now; it takes effect at the next start." : "";
}
