/** The page of the metrics, from the registries that gateway and hub fill. */
import { Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import { measureSpool, measureTriggers } from "./attention.ts";
import { ConfigurationMetrics } from "./configuration-metrics.ts";
import { GatewayMetrics } from "./metrics.ts";
import { measureWork, watchHeld } from "./work-metrics.ts";

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
\`docs/grafana-dashboard.json\` shows them, \`docs/hub-grafana-dashboard.json\` those of a hub, and
\`docs/alert-rules.yml\` has rules for alerts of both.`;

const HUB_INTRO = `\`GET /metrics\` at \`metrics.listen\` of a hub, which requires \`metrics.token\` beyond loopback,
has these beside the metrics of the gateway inside it. Hubs that share a store show the same numbers of
operations: take \`max\`, not \`sum\`, over instances.`;

/** `hub`: the registry of a hub's own metrics. */
export function metricsReference(hub: Registry): string {
  return [
    ...["# Metrics", "", INTRO, "", "## Of a gateway", "", ...table(describedMetrics())],
    ...["", "## Of a hub", "", HUB_INTRO, "", ...table(described(hub)), ""],
  ].join("\n");
}

function table(metrics: readonly Described[]): readonly string[] {
  const rows = metrics.map(
    ({ name, help, type, labelNames }) =>
      `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(", ")} | ` +
      `${help.replaceAll("|", "\\|")} |`,
  );
  return ["| metric | type | labels | meaning |", "|---|---|---|---|", ...rows];
}

/** The metrics of a gateway, in the order of their names. */
export function describedMetrics(): readonly Described[] {
  const registry = new Registry();
  new GatewayMetrics(registry);
  new ConfigurationMetrics().register(registry);
  const ledger = { backlog: async () => [], restingIn: async () => [], files: {} as Ledger["files"] };
  measureWork(registry, {
    ledger,
    drops: () => [],
    health: async () => [],
    lanes: async () => [],
    unfinished: () => [],
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
  return described(registry);
}

/** In the order of their names. */
export function described(registry: Registry): readonly Described[] {
  return registry
    .getMetricsAsArray()
    .map((metric) => metric as unknown as Described)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
