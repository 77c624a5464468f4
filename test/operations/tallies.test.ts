import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { openLedger } from "#gateway/ledger/open.ts";
import { GatewayMetrics, Readings, Tally } from "#gateway/operations/metrics.ts";
import { claimed, steppingClock } from "../ledger/fixtures.ts";

const seriesOf = async (registry: Registry) =>
  (await registry.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));

it("adds up the counts between two queries, and shows a series without counts", async () => {
  const registry = new Registry();
  const tally = new Tally({ name: "files_total", help: "files", registers: [registry] }, ["drop"]);
  const [a] = [tally.cell({ drop: "a" }), tally.cell({ drop: "b" })];
  for (const all of [2, 5]) {
    a.value += all === 2 ? 2 : 3;
    expect(await seriesOf(registry)).toEqual([`files_total{drop="a"} ${all}`, 'files_total{drop="b"} 0']);
  }
});

it("shows the last value of each", async () => {
  const registry = new Registry();
  const readings = new Readings({ name: "calls", help: "calls", registers: [registry] }, "service");
  readings.add("hub", 2);
  readings.add("hub", -1);
  readings.set("other", 7);
  expect(await seriesOf(registry)).toEqual(['calls{service="hub"} 1', 'calls{service="other"} 7']);
});

it("counts runs by their bindings, in whatever order they come", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const ledger = await openLedger({ kind: "sqlite", path: join(folder, "l.sqlite") }, { clock: steppingClock() });
  const run = await claimed(ledger, "a.csv");
  await ledger.close();
  rmSync(folder, { recursive: true });

  const registry = new Registry();
  const metrics = new GatewayMetrics(registry);
  const other = { ...run, binding: { ...run.binding, service: "other" } };
  const points = { ...run.points, mapped: 3 };
  for (const one of [run, other, { ...run, state: "mapped" as const, points }, other])
    metrics.countRun(one, one.state === "mapped");
  const seen = (await seriesOf(registry)).filter((line) => line.startsWith("headgate_runs_total"));
  const labels = (service: string) => `drop="field",trigger="monthly",mapper="standard",service="${service}"`;
  expect(seen).toEqual([
    `headgate_runs_total{${labels("main")},state="claimed"} 1`,
    `headgate_runs_total{${labels("other")},state="claimed"} 2`,
    `headgate_runs_total{${labels("main")},state="mapped"} 1`,
  ]);
  expect(await registry.metrics()).toContain(`headgate_points_mapped_total{${labels("main")}} 3`);
});
