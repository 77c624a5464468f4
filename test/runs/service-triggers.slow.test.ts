import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { askOperations } from "../support/operations.ts";
import { drop, GatewayRig, oneReading, trigger } from "./gateway-rig.ts";
import { listed, TriggerService } from "./trigger-service.ts";

const GUID = "0b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11";
const POLL = { timeout: 30_000 };

let rig: GatewayRig;
let service: TriggerService;

beforeEach(async () => {
  rig = await GatewayRig.start();
  service = await TriggerService.start(rig.hub.url);
});
afterEach(async () => {
  await rig.close();
  await service.close();
});

const FROM_SERVICE = { from: "service", every: "100ms" };
const sections = (more: Readonly<Record<string, unknown>> = {}) => ({
  services: [rig.service("hub", service.url)],
  triggers: FROM_SERVICE,
  ...more,
});

async function runOf({ ledger }: Gateway, path: string): Promise<Run | undefined> {
  return (await ledger.trace(path))[0]?.runs.at(-1)?.run;
}

const stateOf = (gateway: Gateway, path: string) => async () => (await runOf(gateway, path))?.state;
const unmatched = ({ ledger }: Gateway) =>
  ledger.arrivalsIn("in", ["unmatched"]).then((all) => all.map(({ path, reason }) => `${path}: ${reason}`).join("\n"));

describe("a gateway whose triggers come from the service", () => {
  it("works from them alone, and takes a change of them without a restart", async () => {
    const variable = await rig.variable("a");
    service.triggers = [listed(1, ".csv")];
    rig.put("in/a.csv", oneReading(variable, 7));
    rig.put("in/b.dat", oneReading(variable, 9, "2026-03-02T00:00:00Z"));
    const gateway = await rig.open(sections());
    await expect.poll(stateOf(gateway, "a.csv"), POLL).toBe("confirmed");
    expect(await runOf(gateway, "a.csv")).toMatchObject({ binding: { trigger: "hub:1", service: "hub" } });
    await expect.poll(() => unmatched(gateway), POLL).toMatch(/^b\.dat: hub:1: EndsWith ".csv": no$/);
    service.triggers = [listed(1, ".csv", { State: "Inactive" }), listed(2, ".dat")];
    await expect.poll(stateOf(gateway, "b.dat"), POLL).toBe("confirmed");
    rig.put("in/c.csv", oneReading(variable, 8));
    await expect.poll(() => unmatched(gateway), POLL).toMatch(/^c\.csv: hub:1: its state is Inactive/);
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7, "2026-03-02": 9 });
  });

  it("keeps them over an outage, and over a restart in it", async () => {
    const variable = await rig.variable("a");
    service.triggers = [listed(1, ".csv")];
    rig.put("in/a.csv", oneReading(variable, 7));
    const first = await rig.open(sections());
    await expect.poll(stateOf(first, "a.csv"), POLL).toBe("confirmed");
    service.state = "empty";
    const { asked } = service;
    await expect.poll(() => service.asked, POLL).toBeGreaterThan(asked);
    rig.put("in/b.csv", oneReading(variable, 8));
    await expect.poll(stateOf(first, "b.csv"), POLL).toBe("confirmed");
    service.state = "away";
    rig.put("in/c.csv", oneReading(variable, 9));
    const second = await rig.open(sections());
    await expect.poll(stateOf(second, "c.csv"), POLL).toBe("confirmed");
  });

  it("leaves files where they are while the triggers are not known, and claims them once they are", async () => {
    const variable = await rig.variable("a");
    service.state = "away";
    rig.put("in/a.csv", oneReading(variable, 7));
    rig.put("in/b.dat", oneReading(variable, 8));
    const finish = { guard: "0s", unmatched: { archive: "unclaimed" } };
    const local = trigger("local", { fileNamePatternMatches: [{ filterType: "Contains", value: "." }] });
    const gateway = await rig.open(sections({ drops: [drop("in", { finish })], triggers: [FROM_SERVICE, local] }));
    await expect
      .poll(() => unmatched(gateway), POLL)
      .toMatch(/a\.csv: triggers of the service hub: they are not known yet: .*\nb\.dat/);
    expect(existsSync(join(rig.folder, "in", "a.csv"))).toBe(true);
    service.triggers = [listed(1, ".csv")];
    service.state = "there";
    await expect.poll(stateOf(gateway, "a.csv"), POLL).toBe("confirmed");
    await expect.poll(stateOf(gateway, "b.dat"), POLL).toBe("confirmed");
    expect((await runOf(gateway, "a.csv"))?.binding.trigger).toBe("hub:1");
    expect((await runOf(gateway, "b.dat"))?.binding.trigger).toBe("local");
  });

  it("quarantines files of a trigger whose mapping is bound to no mapper, and maps the others", async () => {
    const variable = await rig.variable("a");
    const custom = { FileType: "CustomFormat", Mapping: "ACME v2" };
    service.triggers = [listed(1, ".csv"), listed(2, ".acme", custom), listed(3, ".x", { FilterType: 1, State: 5 })];
    rig.put("in/a.csv", oneReading(variable, 7));
    rig.put("in/b.acme", oneReading(variable, 8, "2026-03-02T00:00:00Z"));
    const gateway = await rig.open(sections());
    await expect.poll(stateOf(gateway, "a.csv"), POLL).toBe("confirmed");
    await expect.poll(stateOf(gateway, "b.acme"), POLL).toBe("quarantined");
    expect((await runOf(gateway, "b.acme"))?.reason).toMatchObject({
      code: "HG-TRIG-003",
      message: expect.stringContaining("the trigger hub:2 names the mapping ACME v2"),
    });
    rig.configure(sections({ triggers: [{ ...FROM_SERVICE, mappings: { "ACME v2": "standard" } }] }));
    await gateway.exchange(loadGatewayConfig(rig.config));
    rig.put("in/c.acme", oneReading(variable, 9, "2026-03-03T00:00:00Z"));
    await expect.poll(stateOf(gateway, "c.acme"), POLL).toBe("confirmed");
  });

  it("shows those that cannot work in health and metrics, and in the log once", async () => {
    service.triggers = [
      listed(1, ".csv"),
      listed(2, ".acme", { FileType: "CustomFormat", Mapping: "ACME v2" }),
      listed(3, ".x", { FileType: "CustomFormat", Mapping: "delimited", Metadata: { nonsense: true } }),
      listed(4, ".y", { TriggerType: "Removed" }),
      listed(5, ".z", { FileType: "CustomFormat", State: "Inactive" }),
    ];
    const lines: string[] = [];
    const gateway = await rig.open(sections(), createLog("warn", { write: (line) => void lines.push(line) }));
    const health = async () => {
      const { parts } = (await (await askOperations(gateway, "/health/ready")).json()) as {
        parts: { part: string; ready: boolean; reason: string }[];
      };
      return Object.fromEntries(parts.map(({ part, ready, reason }) => [part, `${ready}: ${reason}`]));
    };
    await expect.poll(health, POLL).toMatchObject({
      "triggers of hub": expect.stringMatching(/^true: 5, listed at 2/),
      "trigger hub:2": expect.stringContaining("names the mapping ACME v2"),
      "trigger hub:3": expect.stringContaining("the mapper delimited refuses its metadata"),
      "trigger hub:4": expect.stringContaining("triggerType"),
    });
    expect(Object.keys(await health()).filter((part) => part.startsWith("trigger "))).toHaveLength(3);
    const metrics = async () => (await askOperations(gateway, "/metrics")).text();
    expect(await metrics()).toMatch(/^headgate_service_triggers\{service="hub"\} 5$/m);
    expect(await metrics()).toMatch(/^headgate_service_triggers_unusable\{service="hub"\} 3$/m);
    expect(await metrics()).toMatch(/^headgate_service_triggers_stale\{service="hub"\} 0$/m);
    expect(lines.filter((line) => line.includes("the trigger hub:2 cannot be used"))).toHaveLength(1);
  });

  it("lets the entry's place in the list decide between triggers of the file and those of the service", async () => {
    const variable = await rig.variable("a");
    service.triggers = [listed(1, ".csv")];
    const first = trigger("first", { fileNamePatternMatches: [{ filterType: "StartsWith", value: "first" }] });
    const gateway = await rig.open(sections({ triggers: [first, FROM_SERVICE, trigger("last")] }));
    for (const path of ["first.csv", "other.csv"]) rig.put(`in/${path}`, oneReading(variable, 7));
    for (const path of ["first.csv", "other.csv"]) await expect.poll(stateOf(gateway, path), POLL).toBe("confirmed");
    expect((await runOf(gateway, "first.csv"))?.binding.trigger).toBe("first");
    expect((await runOf(gateway, "other.csv"))?.binding.trigger).toBe("hub:1");
  });

  it("claims by the way that a file came: SendViaHttp by its token, UploadInStorage by the name", async () => {
    const variable = await rig.variable("a");
    service.triggers = [
      listed(1, ".csv", { IngestionType: "UploadInStorage" }),
      listed(2, ".csv", { IngestionType: "SendViaHttp", Token: GUID, FileNamePatternMatches: [] }),
    ];
    const users = [{ username: "device", password: "device-password" }];
    const intake = { name: "intake", kind: "http", listen: "127.0.0.1:0", users, every: "100ms" };
    const gateway = await rig.open(sections({ drops: [drop("in"), intake] }));
    const url = gateway.intakes["intake"] ?? "";
    const authorization = `Basic ${Buffer.from("device:device-password").toString("base64")}`;
    const post = (path: string, body: string | FormData) =>
      fetch(`${url}${path}`, { method: "POST", headers: { authorization }, body }).then(({ status }) => status);
    expect(await post(`/api/generic/${GUID}`, oneReading(variable, 7))).toBe(200);
    expect(await post(`/api/generic/${GUID.replace("0", "1")}`, oneReading(variable, 7))).toBe(404);
    const form = new FormData();
    form.append("file", new Blob([oneReading(variable, 8, "2026-03-02T00:00:00Z")]), "up.csv");
    expect(await post("/storage?filename=up.csv", form)).toBe(200);
    await expect.poll(() => rig.stored(variable), POLL).toEqual({ "2026-03-01": 7, "2026-03-02": 8 });
    const used = (await gateway.ledger.recentRuns(10)).map(({ binding }) => binding.trigger).toSorted();
    expect(used).toEqual(["hub:1", "hub:2"]);
  });
});

it("triggers of the hub are those of the gateway, which can be asked to read them at once", async () => {
  const variable = await rig.variable("a");
  const token = await rig.client.token(new AbortController().signal);
  const call = (method: string, body: object) =>
    fetch(`${rig.hub.url}/fileTrigger`, {
      method,
      headers: { authorization: `Bearer ${token.value}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const patterns = (value: string) => ({ fileNamePatternMatches: [{ filterType: "EndsWith", value }] });
  const made = await call("POST", { ...patterns(".csv"), fileType: "OpisenseStandard" });
  expect(made.status).toBe(200);
  const answer = (await made.json()) as number | { id: number };
  const id = typeof answer === "number" ? answer : answer.id;
  rig.put("in/a.csv", oneReading(variable, 7));
  rig.put("in/b.dat", oneReading(variable, 8, "2026-03-02T00:00:00Z"));
  const gateway = await rig.open({ triggers: { from: "service", every: "1h" } });
  await expect.poll(stateOf(gateway, "a.csv"), POLL).toBe("confirmed");
  expect((await call("PUT", { id, ...patterns(".dat") })).ok).toBe(true);
  await gateway.readTriggers("hub");
  await expect.poll(stateOf(gateway, "b.dat"), POLL).toBe("confirmed");
});
