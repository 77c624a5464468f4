/** Connects the expectations of the triggers to the watch for late files. */

import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { GatewayConfig } from "./config.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { LateFiles } from "./operations/late-files.ts";
import type { GatewayMetrics } from "./operations/metrics.ts";
import { missingFiles } from "./triggers/expectation.ts";

export function lateFiles(
  config: GatewayConfig,
  ledger: Ledger,
  parts: {
    readonly metrics: GatewayMetrics;
    readonly clock: Clock;
    readonly log: Logger;
    readonly startedAt: string;
  },
): LateFiles {
  const { metrics, clock, log, startedAt } = parts;
  return new LateFiles({
    find: () => missingFiles(config.triggers, ledger, Temporal.Instant.from(startedAt), clock.now()),
    count: (missing) => metrics.countLate(missing.map((file) => file.trigger)),
    clock,
    log,
  });
}
