/** The page of the metrics, from the registry that the gateway fills. */
import { Registry } from "prom-client";
import { ConfigurationMetrics } from "./configuration-metrics.ts";
import { watchHeld } from "./held-runs.ts";
import { measureTriggers } from "./listed-triggers.ts";
import { GatewayMetrics } from "./metrics.ts";
import { measureSpool } from "./spool-state.ts";
import { measureWork } from "./work-metrics.ts";

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

const INTRO = `Every metric of \`GET /metrics\`, which requires a token (\`operations.access\`), generated
from the registry that the gateway fills; \`Accept: application/openmetrics-text\` adds exemplars with the
operation and the trace of a push. Labels contain only names of the configuration and fixed words, so that
their number is bounded. Counters begin at 0 with the process. Nodes that share a ledger count separately,
but the gauges of runs that wait or need attention cover all of them: take \`max\`, not \`sum\`, over
instances. A hub shows the metrics of the gateway inside it at its own \`metrics.listen\`, without the labels
\`trigger\` and \`mapper\`, whose values the accounts choose; drop and service are \`account-<id>\`.
\`docs/grafana-dashboard.json\` shows them, and \`docs/alert-rules.yml\` has rules for alerts.`;

export function metricsReference(): string {
  const rows = describedMetrics().map(
    ({ name, help, type, labelNames }) =>
      `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(", ")} | ` +
      `${help.replaceAll("|", "\\|")} |`,
  );
  return ["# Metrics", "", INTRO, "", "| metric | type | labels | meaning |", "|---|---|---|---|", ...rows, ""].join(
    "\n",
  );
}

/** In the order of their names. */
export function describedMetrics(): readonly Described[] {
  const registry = new Registry();
  new GatewayMetrics(registry);
  new ConfigurationMetrics().register(registry);
  const ledger = { backlog: async () => [], restingIn: async () => [] };
  measureWork(registry, {
    ledger,
    drops: () => [],
    health: async () => [],
    lanes: async () => [],
    nowMs: () => 0,
  });
  watchHeld(ledger, registry);
  const nothing = {
    usedBytes: 0,
    sharedBytes: 0,
    held: { runs: 0, bytes: 0 },
    budgetBytes: 0,
    freeBytes: 0,
    full: null,
  };
  measureTriggers(registry, async () => []);
  measureSpool(registry, { state: async () => nothing });
  return registry
    .getMetricsAsArray()
    .map((metric) => metric as unknown as Described)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
