/**
 * Opens the operations API of a gateway. It listens before the other parts are opened, and answers with the parts
 * that exist.
 */
import type { Registry } from "prom-client";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { endpointFilePath, hangSign, newSecret } from "../operations/endpoint-file.ts";
import { watchHeld } from "../operations/held-runs.ts";
import { startOperations } from "../operations/server.ts";
import type { DropState, HealthPart, WaitingFile } from "../operations/state-of-work.ts";
import type { LaneWait } from "../operations/waiting-lanes.ts";
import { measureWork } from "../operations/work-metrics.ts";
import type { Clock } from "../support/clock.ts";
import { TransientError } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import type { Closer } from "./closers.ts";
import { receiveOutcome } from "./services.ts";

/** Set one by one as the parts that provide them are opened. */
export interface Answers {
  health: () => Promise<readonly HealthPart[]>;
  waiting: () => Promise<readonly WaitingFile[]>;
  drops: () => readonly DropState[];
  lanes: () => Promise<readonly LaneWait[]>;
  /** Executes a command of a person. */
  order: (asked: unknown) => Promise<unknown>;
  /** Called when an outcome of this run arrived. */
  tell: (runId: string) => Promise<void>;
}

export interface OperationsApi {
  readonly url: string;
  /** The URL that webhooks are sent to. */
  readonly webhookUrl: string;
  /** The secret of the endpoint file. */
  readonly token: string;
  readonly answers: Answers;
}

export async function openOperationsApi(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly log: Logger;
    readonly clock: Clock;
    readonly metrics: Registry;
  },
  closers: Closer[],
): Promise<OperationsApi> {
  const { ledger, clock } = parts;
  const answers: Answers = {
    health: async () => [{ part: "gateway", ready: false, reason: "it is starting" }],
    waiting: async () => [],
    drops: () => [],
    lanes: async () => [],
    order: async () => {
      throw new TransientError("HG-OPS-002", { operation: "take order", subject: "gateway" });
    },
    tell: async () => {},
  };
  watchHeld(ledger, parts.metrics);
  measureWork(parts.metrics, {
    ledger,
    drops: () => answers.drops(),
    health: () => answers.health(),
    lanes: () => answers.lanes(),
    nowMs: () => clock.now().epochMilliseconds,
  });
  const secret = newSecret();
  const operations = await startOperations(config.operations, {
    ledger,
    log: parts.log,
    metrics: parts.metrics,
    health: () => answers.health(),
    waiting: () => answers.waiting(),
    drops: () => answers.drops(),
    receiveOutcome: (body, signature) =>
      receiveOutcome(config, { body, signature }, ledger, clock, (runId) => answers.tell(runId)),
    orders: { secret, take: (asked) => answers.order(asked) },
  });
  closers.push(() => operations.close());
  closers.push(await hangSign(endpointFilePath(config), { url: operations.url, secret }));
  return { url: operations.url, webhookUrl: operations.webhookUrl, token: secret, answers };
}
