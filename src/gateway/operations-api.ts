/**
 * Opens the operations API of a gateway. It listens before the other parts are opened, and answers with the parts
 * that exist.
 */

import type { Clock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Closer } from "./closers.ts";
import { type GatewayConfig, writtenIn } from "./config.ts";
import type { ConsoleParts } from "./console/index.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { ledgerFile, nodeName } from "./ledger/options.ts";
import type { DropState } from "./model.ts";
import type { Observers } from "./observers.ts";
import { endpointFilePath, linksFilePath, newSecret, writeEndpointFile } from "./operations/endpoint-file.ts";
import { startOperations } from "./operations/server.ts";
import type { HealthPart, UnfinishedFiles, WaitingPart, WaitingQuery } from "./operations/state-of-work.ts";
import type { LaneWait } from "./operations/waiting-lanes.ts";
import { measureWork, watchHeld } from "./operations/work-metrics.ts";
import { receiveOutcome } from "./services.ts";

/** Set one by one as the parts that provide them are opened. */
export interface OperatorQueries {
  health: () => Promise<readonly HealthPart[]>;
  waiting: (query?: WaitingQuery) => Promise<WaitingPart>;
  drops: () => readonly DropState[];
  lanes: () => Promise<readonly LaneWait[]>;
  unfinished: UnfinishedFiles["list"];
  /** The data of the configuration's file as it is in force. */
  written: () => object;
  /** Executes a command of a person. */
  command: (body: unknown) => Promise<unknown>;
  /** Called when an outcome of this run arrived. */
  onOutcome: (runId: string) => Promise<void>;
  /** The parts that the endpoints of `console/` need; null before they are opened. */
  console: ConsoleParts | null;
}

/** Ways to the operations API for the program that the gateway is a part of. */
export interface OperationsAccess {
  /** Such as `http://127.0.0.1:9464`. */
  readonly operationsUrl: string;
  /** The token with which this process may use the whole operations API: `Authorization: Bearer <token>`. */
  readonly operationsToken: string;
  /** Where browsers reach the console; null where it is not served. */
  readonly consoleUrl: string | null;
  /** A link to the console that signs in once, as an operator of this name; null where people sign in otherwise. */
  consoleLink(name: string): string | null;
}

export interface OperationsApi {
  readonly url: string;
  /** The URL that webhooks are sent to. */
  readonly webhookUrl: string;
  readonly access: OperationsAccess;
  readonly queries: OperatorQueries;
}

export async function openOperationsApi(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly log: Logger;
    readonly clock: Clock;
    readonly observers: Pick<Observers, "metrics" | "live">;
  },
  closers: Closer[],
): Promise<OperationsApi> {
  const { ledger, clock, observers } = parts;
  const metrics = observers.metrics.registry;
  const queries: OperatorQueries = {
    health: async () => [{ part: "gateway", ready: false, reason: "it is starting" }],
    waiting: async () => ({ files: [], total: 0, next: null }),
    drops: () => [],
    lanes: async () => [],
    unfinished: () => [],
    written: () => writtenIn(config) ?? {},
    command: async () => {
      throw new TransientError("HG-OPS-002", { operation: "execute command", subject: "gateway" });
    },
    onOutcome: async () => {},
    console: null,
  };
  watchHeld(ledger, metrics);
  measureWork(metrics, {
    ledger,
    drops: () => queries.drops(),
    health: () => queries.health(),
    lanes: () => queries.lanes(),
    unfinished: () => queries.unfinished(),
    nowMs: () => clock.now().epochMilliseconds,
  });
  const secret = newSecret();
  const operations = await startOperations(config.operations, {
    ledger,
    log: parts.log,
    metrics,
    health: () => queries.health(),
    waiting: (query) => queries.waiting(query),
    receiveOutcome: (body, signature) =>
      receiveOutcome(config, { body, signature }, ledger, clock, (runId) => queries.onOutcome(runId)),
    commands: { secret, execute: (body) => queries.command(body), configuration: () => queries.written() },
    live: observers.live,
    people: {
      ...{ clock, node: nodeName(config.ledger) },
      linksFile: linksFilePath(ledgerFile(config.ledger), config.spool),
    },
    endpoints: async () => (await import("./console/index.ts")).consoleEndpoints(config, () => queries.console),
  });
  closers.push(() => operations.close());
  closers.push(
    await writeEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool), {
      url: operations.url,
      secret,
    }),
  );
  const { url, webhookUrl, consoleUrl, consoleLink } = operations;
  return {
    ...{ url, webhookUrl, queries },
    access: { operationsUrl: url, operationsToken: secret, consoleUrl, consoleLink },
  };
}
