import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { serviceTriggersOptions } from "#gateway/triggers/options.ts";
import { ServiceTriggers, type TriggerSource } from "#gateway/triggers/service-triggers.ts";
import type { KeptLists } from "#gateway/triggers/source-watch.ts";
import { listed, TriggerService } from "../runs/trigger-service.ts";

type List = Parameters<KeptLists["keep"]>[0];

let service: TriggerService;
let kept: Map<string, List>;
let lines: string[];
let open: ServiceTriggers[];

beforeEach(async () => {
  service = await TriggerService.start();
  kept = new Map();
  lines = [];
  open = [];
});
afterEach(async () => {
  for (const one of open) await one.close();
  await service.close();
});

const source = (more: Readonly<Record<string, unknown>> = {}): TriggerSource => ({
  rule: { ...serviceTriggersOptions.parse({ from: "service", every: "20ms", ...more }), service: "main" },
  access: {
    name: "main",
    base: service.url,
    push: service.url,
    token: `${service.url}/connect/token`,
    apiVersion: "1.7",
    auth: "bearer",
    credentials: { clientId: "c", clientSecret: "client-secret", username: "u", password: "password" },
    scopes: ["datahub-api"],
  },
  timeouts: { connect: 5_000, headers: 5_000, body: 5_000, total: 10_000 },
});

/** A gateway's triggers of services; `kept` is shared by all. */
function start(sources: readonly TriggerSource[] = [source()], recheckMs: number | null = null): ServiceTriggers {
  const triggers = new ServiceTriggers({
    lists: {
      find: async (name) => kept.get(name) ?? null,
      keep: async (list) => void kept.set(list.source, list),
    },
    recheckMs,
    clock: systemClock,
    log: createLog("info", { write: (line) => void lines.push(line) }),
    onChange: () => undefined,
  });
  triggers.configure(sources);
  open.push(triggers);
  return triggers;
}

const names = (of: ServiceTriggers) => of.state("main")?.triggers.map(({ name }) => name) ?? [];

describe("the triggers of a service", () => {
  it.each([
    ["by page number", true],
    ["by the size of a page alone", false],
  ])("are read whole, from pages %s", async (_how, knowsPages) => {
    service.triggers = Array.from({ length: 1_234 }, (_, index) => listed(index + 1, `.${index}`));
    service.pageMax = knowsPages ? 100 : 5_000;
    service.knowsPages = knowsPages;
    const triggers = start([source({ every: "1h" })]);
    await triggers.firstAttempt();
    expect(names(triggers)).toHaveLength(1_234);
    expect(new Set(names(triggers)).size).toBe(1_234);
  });

  it("stay as they are when the service does not list all of them", async () => {
    service.triggers = [listed(1, ".a"), listed(2, ".b")];
    const triggers = start();
    await expect.poll(() => names(triggers)).toEqual(["main:1", "main:2"]);
    service.triggers = Array.from({ length: 30 }, (_, index) => listed(index + 1, `.${index}`));
    service.pageMax = 10;
    service.knowsPages = false;
    await expect
      .poll(() => triggers.state("main")?.fault, { timeout: 10_000 })
      .toMatch(/the service has 30 triggers and lists 10 of them/);
    expect(names(triggers)).toEqual(["main:1", "main:2"]);
  });

  it("stay in force when the service lists none, until further readings have found none", async () => {
    service.triggers = [listed(1, ".a")];
    const triggers = start([source({ every: "1h", confirmEmpty: 2 })]);
    await triggers.firstAttempt();
    service.triggers = [];
    // Readings that are asked for confirm nothing.
    for (let times = 0; times < 3; times += 1) await triggers.checkNow();
    expect(names(triggers)).toEqual(["main:1"]);
    expect(triggers.state("main")).toMatchObject({ fault: null, emptySince: expect.any(String) });
    expect([...kept.values()][0]?.triggers).toContain("EndsWith");
    expect(lines.filter((line) => line.includes("the service lists no triggers"))).toHaveLength(1);
    service.triggers = [listed(1, ".a")];
    await triggers.checkNow();
    expect(triggers.state("main")).toMatchObject({ emptySince: null, listedAt: expect.any(String) });
    service.triggers = [];
    triggers.configure([source({ every: "20ms", confirmEmpty: 3 })]);
    await expect.poll(() => names(triggers)).toEqual([]);
    expect(service.asked).toBeGreaterThanOrEqual(8);
    expect(triggers.state("main")).toMatchObject({ emptySince: null });
  });

  it("follow the service, also when it has none left", async () => {
    service.triggers = [listed(1, ".a")];
    const triggers = start();
    await expect.poll(() => names(triggers)).toEqual(["main:1"]);
    service.triggers = [listed(1, ".a"), listed(2, ".b")];
    await expect.poll(() => names(triggers)).toEqual(["main:1", "main:2"]);
    service.triggers = [];
    await expect.poll(() => names(triggers)).toEqual([]);
    expect(triggers.state("main")).toMatchObject({ fault: null, listedAt: expect.any(String) });
  });

  it("outlast an outage and a restart in it, with one warning at its beginning", async () => {
    service.triggers = [listed(1, ".a")];
    const before = start();
    await expect.poll(() => names(before)).toEqual(["main:1"]);
    service.state = "empty";
    await expect.poll(() => before.state("main")?.fault).toMatch(/503/);
    expect(names(before)).toEqual(["main:1"]);
    await before.close();
    service.state = "away";
    const after = start();
    await after.firstAttempt();
    expect(names(after)).toEqual(["main:1"]);
    expect(after.state("main")?.fault).not.toBeNull();
    service.state = "there";
    service.triggers = [listed(2, ".b")];
    await after.checkNow();
    expect(names(after)).toEqual(["main:2"]);
    expect(lines.filter((line) => line.includes("cannot be read"))).toHaveLength(2);
    expect(lines.some((line) => line.includes("can be read again"))).toBe(true);
  });

  it("are read for every caller that asks, also while they are being read, and say when they cannot be", async () => {
    const triggers = start([source({ every: "1h" })]);
    await triggers.firstAttempt();
    for (let id = 1; id <= 20; id += 1) {
      service.triggers = [listed(id, `.${id}`)];
      const first = triggers.checkNow("main");
      service.triggers = [listed(id, `.${id}`), listed(id + 1, ".x")];
      await Promise.all([first, triggers.checkNow("main"), triggers.checkNow()]);
      service.triggers = [listed(id + 2, ".y")];
      await triggers.checkNow("main");
      expect(names(triggers)).toEqual([`main:${id + 2}`]);
    }
    service.state = "away";
    await expect(triggers.checkNow("main")).rejects.toMatchObject({ code: "HG-TRIG-002" });
    service.state = "there";
    await triggers.checkNow("main");
  });

  it("are not known before the first list, and known when the same account is configured otherwise", async () => {
    service.state = "away";
    const triggers = start();
    await triggers.firstAttempt();
    expect(triggers.state("main")).toMatchObject({ listedAt: null, triggers: [] });
    service.state = "there";
    service.triggers = [listed(1, ".a", { FileType: "CustomFormat", Mapping: "m" })];
    await triggers.checkNow();
    service.state = "away";
    triggers.configure([source({ mappings: { m: "acme" } })]);
    expect(triggers.state("main")?.triggers[0]?.trigger?.mapper).toBe("acme");
    triggers.configure([]);
    expect(triggers.state("main")).toBeUndefined();
  });

  it("are read once more when that is asked for while they are read", async () => {
    service.triggers = [listed(1, ".a")];
    const release = Promise.withResolvers<void>();
    service.held = release.promise;
    const triggers = start([source({ every: "1h" })]);
    await expect.poll(() => service.asked).toBe(1);
    service.triggers = [listed(1, ".a"), listed(2, ".b")];
    const checked = triggers.checkNow();
    const again = triggers.checkNow();
    release.resolve();
    service.held = null;
    await Promise.all([checked, again]);
    expect(names(triggers)).toEqual(["main:1", "main:2"]);
  });

  it.each(["", "-1", "no number", "1e1"])("are read whole when the service counts them by %j", async (total) => {
    service.triggers = Array.from({ length: 30 }, (_, index) => listed(index + 1, `.${index}`));
    service.pageMax = 10;
    service.total = total;
    const triggers = start([source({ every: "1h" })]);
    await triggers.firstAttempt();
    expect(names(triggers)).toHaveLength(30);
  });

  it("are not taken from pages between which one was removed, which moves another out of them", async () => {
    service.triggers = Array.from({ length: 20 }, (_, index) => listed(index + 1, `.${index}`));
    service.pageMax = 10;
    service.total = "20";
    const release = Promise.withResolvers<void>();
    service.held = release.promise;
    const triggers = start([source({ every: "50ms" })]);
    await expect.poll(() => service.asked).toBe(1);
    service.triggers = service.triggers.slice(1);
    service.total = "19";
    service.held = null;
    release.resolve();
    await expect.poll(() => names(triggers)).not.toEqual([]);
    expect(names(triggers)).toEqual(Array.from({ length: 19 }, (_, index) => `main:${index + 2}`));
  });

  it("are the same on all nodes, of which one reads them", async () => {
    service.triggers = [listed(1, ".a")];
    const often = start([source({ every: "50ms" })]);
    await expect.poll(() => names(often)).toEqual(["main:1"]);
    const other = start([source({ every: "1h" })], 10);
    await other.firstAttempt();
    service.triggers = [listed(1, ".a"), listed(2, ".b")];
    await expect.poll(() => names(other)).toEqual(["main:1", "main:2"]);
  });

  it("are logged with what changed", async () => {
    service.triggers = [listed(1, ".a"), listed(2, ".b"), listed(3, ".c")];
    const triggers = start();
    await expect.poll(() => names(triggers)).toHaveLength(3);
    service.triggers = [listed(1, ".x"), listed(3, ".c"), listed(4, "")];
    await expect.poll(() => names(triggers)).toEqual(["main:1", "main:3", "main:4"]);
    const change = lines.map((line) => JSON.parse(line)).findLast(({ added }) => added !== undefined);
    expect(change).toMatchObject({ added: ["main:4"], removed: ["main:2"], changed: ["main:1"] });
  });
});
