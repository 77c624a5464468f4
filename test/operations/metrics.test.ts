import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Gateway } from "#gateway/gateway.ts";
import { describedMetrics, described as describedOf } from "#gateway/operations/metrics-reference.ts";
import { hubRegistry } from "#hub/metrics.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";
import { askOperations } from "../support/operations.ts";

const docs = resolve(import.meta.dirname, "../../docs");
const described = new Map(
  [...describedMetrics(), ...describedOf(hubRegistry())].map((metric) => [metric.name, metric]),
);
/** What a histogram is read by. */
const SERIES = /_(bucket|count|sum)$/;
/** Of the scrape itself. */
const FROM_PROMETHEUS = ["instance", "job"];

/** The queries of the dashboards and of the rules. */
function queries(): readonly string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "expr" && typeof inner === "string") found.push(inner);
      else visit(inner);
    }
  };
  for (const dashboard of ["grafana-dashboard.json", "hub-grafana-dashboard.json"])
    visit(JSON.parse(readFileSync(join(docs, dashboard), "utf8")));
  visit(parse(readFileSync(join(docs, "alert-rules.yml"), "utf8")));
  return found;
}

/** Faults of one query: metrics that do not exist, and labels that they do not have. */
function faultsOf(query: string): readonly string[] {
  const names = [...query.matchAll(/\bheadgate_[a-z0-9_]+/g)].map(([name]) => name);
  const metrics = names.map((name) => described.get(name) ?? described.get(name.replace(SERIES, "")));
  const labels = new Set(metrics.flatMap((metric) => metric?.labelNames ?? []));
  if (names.some((name) => name.endsWith("_bucket"))) labels.add("le");
  const selectors = [...query.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = ""]) =>
    [...inside.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map((match) => match[1] ?? ""),
  );
  const groupings = [...query.matchAll(/\b(?:by|without|on)\s*\(([^)]*)\)/g)].flatMap(([, inside = ""]) =>
    inside.split(",").map((label) => label.trim()),
  );
  return [
    ...names.filter((_, index) => metrics[index] === undefined),
    ...[...selectors, ...groupings].filter((label) => !labels.has(label) && !FROM_PROMETHEUS.includes(label)),
  ];
}

describe("the dashboards and the alert rules", () => {
  it.each(queries())("%s query only existing metrics", (query) => {
    expect(faultsOf(query)).toEqual([]);
  });

  it("would be found with wrong names", () => {
    expect(faultsOf('sum by (color) (headgate_ready{shape="x"}) + headgate_missing')).toEqual([
      "headgate_missing",
      "shape",
      "color",
    ]);
    expect(queries().length).toBeGreaterThan(20);
  });

  it("cite headings that are there", () => {
    const text = readFileSync(join(docs, "alert-rules.yml"), "utf8");
    const cited = [...text.matchAll(/`docs\/([a-z-]+\.md)`, "([^"]+)"/g)];
    expect(cited.length).toBeGreaterThan(0);
    for (const [, page = "", heading = ""] of cited)
      expect(readFileSync(join(docs, page), "utf8").split("\n")).toContain(`## ${heading}`);
  });

  it("use only labels that the rule keeps in their texts", () => {
    const { groups } = parse(readFileSync(join(docs, "alert-rules.yml"), "utf8")) as {
      groups: { rules: { expr: string; annotations: { summary: string } }[] }[];
    };
    for (const { expr, annotations } of groups.flatMap(({ rules }) => rules)) {
      const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(", ");
      const own = [...expr.matchAll(/\bheadgate_[a-z_]+/g)].flatMap(
        ([name]) => described.get(name.replace(SERIES, ""))?.labelNames ?? described.get(name)?.labelNames ?? [],
      );
      for (const [, label = ""] of annotations.summary.matchAll(/\$labels\.([a-z_]+)/g))
        expect([...(kept ?? own), "instance"]).toContain(label);
    }
  });
});

describe("the metrics", () => {
  it.each([...described.values()])("$name are named by the conventions of Prometheus", ({ name, type, help }) => {
    expect(name).toMatch(/^headgate_[a-z]+(_[a-z]+)*$/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    expect(help.length).toBeGreaterThan(10);
    if (/duration|age|timestamp/.test(name)) expect(name).toMatch(/_seconds$/);
  });
});

describe("a gateway that delivered and refused", () => {
  let rig: GatewayRig;
  let gateway: Gateway;
  beforeEach(async () => {
    rig = await GatewayRig.start();
    const variable = await rig.variable("a");
    rig.put("in/a.csv", `${oneReading(variable, 7)}${variable},2026-03-02T00:00:00Z,8\n`);
    rig.put("in/bad.csv", "variable_id,date,value\nx,y,z\n");
    rig.put("dead/b.csv", oneReading(variable, 7));
    gateway = await rig.open({
      services: [rig.service("hub"), rig.service("dead", "http://127.0.0.1:9")],
      drops: [drop("in"), drop("dead")],
      triggers: [
        trigger("standard", { service: "hub", drops: ["in"] }),
        trigger("dead", {
          service: "dead",
          drops: ["dead"],
          guard: { targets: "push", units: "push", dates: "push", versions: "push", unreadable: "push" },
        }),
      ],
    });
    const states = async () => new Set((await gateway.ledger.recentRuns(10)).map(({ state }) => state));
    await until("all came to where they stay", async () => {
      const now = await states();
      return ["confirmed", "quarantined", "delivering"].every((state) => now.has(state as "confirmed"));
    });
  });
  afterEach(() => rig.close());

  it("count by kind and since when, with names of the configuration", async () => {
    await until("the dead one failed", async () => (await scrape()).includes('status="none"'));
    const text = await scrape();
    const run = 'drop="in",trigger="standard",mapper="standard",service="hub"';
    expect(text).toContain('headgate_files_seen_total{drop="in"} 2');
    expect(text).toContain(`headgate_points_mapped_total{${run}} 2`);
    expect(text).toContain(`headgate_points_accepted_total{${run}} 2`);
    expect(text).toContain(`headgate_points_confirmed_total{${run}} 2`);
    expect(text).toContain(`headgate_runs_total{${run},state="quarantined"} 1`);
    expect(text).toContain(
      'headgate_runs_waiting{drop="dead",trigger="dead",mapper="standard",service="dead",state="delivering"} 1',
    );
    expect(text).toMatch(/headgate_oldest_waiting_age_seconds\{drop="dead"[^}]*\} \d/);
    expect(text).toContain('headgate_runs_needing_a_person{drop="in",trigger="standard",state="quarantined"} 1');
    expect(text).toContain('headgate_push_duration_seconds_count{service="hub",status="2xx"} 1');
    expect(text).toContain('headgate_ready{part="drop in"} 1');
    expect(text).toMatch(/headgate_poll_duration_seconds_count\{drop="in",result="complete"\} [1-9]/);
    expect(text).toMatch(/headgate_service_last_success_timestamp_seconds\{service="hub"\} \d{10}/);
    expect(text).not.toContain(".csv");
    const told = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(told.filter((name) => name !== undefined && !described.has(name))).toEqual([]);
  });

  it("lead from a push to its operation and trace, for clients that request OpenMetrics", async () => {
    const text = await scrape("application/openmetrics-text; version=1.0.0");
    const [run] = await gateway.ledger.recentRuns(10, ["confirmed"]);
    expect(text).toContain(`operation_id="${run?.id}-1"`);
    expect(text).toMatch(/# \{[^}]*trace_id="[0-9a-f]{32}"/);
    expect(text.trimEnd().endsWith("# EOF")).toBe(true);
    expect(await scrape()).not.toContain("trace_id");
  });

  async function scrape(accept = "text/plain"): Promise<string> {
    return await (await askOperations(gateway, "/metrics", { accept })).text();
  }
});
