/** Overview, history and calendar, through a running gateway. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import { overviewEndpoints as endpoints } from "#gateway/operations/api/overview.ts";
import { playgroundEndpoints } from "#gateway/operations/api/playground.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { call, refusal } from "./calls.ts";

const HOUR_MS = 3_600_000;

let rig: GatewayRig;
let clock: JumpingClock;
let variable: number;

beforeEach(async () => {
  rig = await GatewayRig.start();
  clock = new JumpingClock();
  variable = await rig.variable("M-1");
});
afterEach(() => rig.close());

async function comes(gateway: Gateway, path: string, content: string, state: "confirmed" | "quarantined") {
  rig.put(path, content);
  await until(`${path} is ${state}`, async () =>
    (await gateway.ledger.recentRuns(100, [state])).some((run) => `in/${run.path}` === path),
  );
}

it("shows drops, stages, services and the spool, and what the last day and month brought", async () => {
  const gateway = await rig.open({ drops: [drop("in"), drop("gone")] }, silentLog, clock);
  await comes(gateway, "in/a.csv", oneReading(variable, 1), "confirmed");
  await comes(gateway, "in/b.csv", "neither,a,reading\n", "quarantined");
  await until("the drops are polled", async () =>
    (await call(gateway, endpoints.overview)).flow.drops.some(({ state }) => state === "trouble"),
  );
  const { flow, spool, nodes, health } = await call(gateway, endpoints.overview);
  expect(flow.drops).toMatchObject([
    { name: "in", kind: "local", state: "ok", waiting: 0 },
    { name: "gone", state: "trouble", words: expect.stringContaining("gone") },
  ]);
  expect(flow.stages).toMatchObject([
    { name: "mapping", running: 0, waiting: 0, ratePerMinute: 1 },
    { name: "delivery", running: 0, waiting: 0, ratePerMinute: 1 },
    { name: "confirmation", running: 0, waiting: 0, ratePerMinute: 1 },
  ]);
  const unfailing = { name: "hub", state: "up", reason: null, breaker: "closed", lastError: null, waiting: 0 };
  expect(flow.services).toEqual([unfailing]);
  expect(spool).toMatchObject({ full: null, budgetBytes: expect.any(Number) });
  expect(nodes).toEqual([]);
  expect(health.map(({ part }) => part)).toContain("service hub");

  for (const [period, steps] of [
    ["day", 24],
    ["month", 30],
  ] as const) {
    const { series, stepMs } = await call(gateway, endpoints.history, { query: { period } });
    expect(stepMs).toBe(period === "day" ? HOUR_MS : 24 * HOUR_MS);
    expect(series.files).toHaveLength(steps);
    const sum = (values: readonly (number | null)[]) => values.reduce<number>((all, one) => all + (one ?? 0), 0);
    expect([sum(series.files), sum(series.points), sum(series.errors)]).toEqual([2, 1, 1]);
    expect(sum(series.delayMs)).toBeGreaterThan(0);
  }
  clock.jump(2 * HOUR_MS);
  const later = await call(gateway, endpoints.history);
  expect(later.series.files.slice(-2)).toEqual([0, 0]);
  expect(later.series.files.slice(0, -2)).toContain(2);

  const runs = await call(gateway, playgroundEndpoints.mapperRuns);
  expect(runs).toMatchObject([{ name: "standard", runs: 2, quarantined: 1 }]);
});

it("counts what waits for a service that is away, with the reason", async () => {
  const away = rig.service("hub", "http://127.0.0.1:1");
  const gateway = await rig.open({ services: [away] }, silentLog, clock);
  rig.put("in/a.csv", oneReading(variable, 1));
  await until("the service is known to be away", async () => {
    const [service] = (await call(gateway, endpoints.overview)).flow.services;
    return service?.state === "down" && service.breaker === "open" && service.waiting === 1;
  });
  const [service] = (await call(gateway, endpoints.overview)).flow.services;
  expect(service?.lastError).toContain("127.0.0.1:1");
});

it("shows in the calendar which files came on time, late or not at all", async () => {
  const due = { by: "12:00", timeZone: "UTC" };
  // An hour before the next noon.
  const toNoonMs = 24 * HOUR_MS - ((clock.now().epochMilliseconds - 12 * HOUR_MS) % (24 * HOUR_MS));
  clock.jump(toNoonMs + 23 * HOUR_MS);
  const gateway = await rig.open({ triggers: [trigger("daily", { expect: due }), trigger("free")] }, silentLog, clock);
  await comes(gateway, "in/first.csv", oneReading(variable, 1), "confirmed");
  clock.jump(26 * HOUR_MS);
  await comes(gateway, "in/second.csv", oneReading(variable, 2), "confirmed");
  clock.jump(48 * HOUR_MS);

  const { triggers } = await call(gateway, endpoints.calendar);
  expect(triggers.map((one) => one.trigger)).toEqual(["daily"]);
  const [daily] = triggers;
  const arrivals = (await gateway.ledger.recentRuns(2)).map(({ arrivalId }) => arrivalId);
  const shown = daily?.expectations.map(({ status, file }) => [status, file]);
  expect(shown?.slice(0, 4)).toEqual([
    ["on-time", arrivals[1]],
    ["late", arrivals[0]],
    ["on-time", arrivals[0]],
    ["missing", null],
  ]);
  expect(new Set(shown?.slice(4).map(([status]) => status))).toEqual(new Set(["pending"]));
  const onTime = daily?.expectations[0];
  expect(onTime?.due.slice(11)).toBe("12:00:00.000Z");
  expect(Date.parse(onTime?.arrivedAt ?? "")).toBeLessThan(Date.parse(onTime?.due ?? ""));
  const from = daily?.expectations[1]?.due ?? "";
  const part = await call(gateway, endpoints.calendar, { query: { from, to: from } });
  expect(part.triggers[0]?.expectations).toEqual([daily?.expectations[1]]);
  for (const wrong of [
    { from: "2026-01-01", to: "2026-06-01" },
    { from: "2026-01-02", to: "2026-01-01" },
    { from: "-271821-04-20T00:00:00Z", to: "+275760-09-13T00:00:00Z" },
  ])
    expect(await refusal(gateway, endpoints.calendar, { query: wrong })).toMatchObject({ status: 400 });
});
