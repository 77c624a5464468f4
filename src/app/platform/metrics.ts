/**
 * The metrics of the gateway inside a hub, for the hub's own. Accounts choose the names of triggers and mappers, which
 * would make series without bound: they are added up by account.
 */
import { AggregatorRegistry, type Registry } from "prom-client";

type Metric = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];
type Labels = Metric["values"][number]["labels"];

const BY_ACCOUNTS = ["trigger", "mapper"];
/** Parts of the gateway whose names end with what accounts choose. */
const PART_BY_ACCOUNTS = /^(?:trigger|mapper|lane) /;

/** In the text format of Prometheus. */
export async function accountMetrics(registry: Registry): Promise<string> {
  const metrics = await registry.getMetricsAsJSON();
  const bounded = metrics.map((metric) => ({
    ...metric,
    aggregator: aggregatorOf(metric.name),
    values: metric.values.map((value) => ({ ...value, labels: boundedLabels(metric.name, value.labels) })),
  }));
  return await AggregatorRegistry.aggregate([bounded]).metrics();
}

/** How several series become one. */
function aggregatorOf(name: string): "min" | "max" | "sum" {
  if (name === "headgate_ready") return "min";
  // Of the histograms, which have the unit in their names, the counts are added up.
  return name.endsWith("_seconds") && !name.endsWith("_duration_seconds") ? "max" : "sum";
}

function boundedLabels(metric: string, labels: Labels): Labels {
  const isPausedTrigger = metric === "headgate_paused" && labels["kind"] === "trigger";
  const kept = Object.entries(labels).filter(
    ([label]) => !BY_ACCOUNTS.includes(label) && !(isPausedTrigger && label === "name"),
  );
  return Object.fromEntries(kept.map(([label, value]) => [label, label === "part" ? partOf(String(value)) : value]));
}

/** Triggers, mappers and lanes count together. */
function partOf(part: string): string {
  return PART_BY_ACCOUNTS.exec(part)?.[0].trim() ?? part;
}
