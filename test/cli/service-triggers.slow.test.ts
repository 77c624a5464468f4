import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { drop, GatewayRig, oneReading, trigger } from "../runs/gateway-rig.ts";
import { listed, TriggerService } from "../runs/trigger-service.ts";

const MAIN = resolve(import.meta.dirname, "../../src/main.ts");

let rig: GatewayRig;
let service: TriggerService;

beforeEach(async () => {
  rig = await GatewayRig.start();
  service = await TriggerService.start(rig.hub.url);
  service.triggers = [
    listed(1, ".csv"),
    listed(2, ".acme", { FileType: "CustomFormat", Mapping: "ACME v2" }),
    listed(3, ".x", { TriggerType: "Removed" }),
    listed(4, ".y", { State: "Inactive" }),
  ];
});
afterEach(async () => {
  await rig.close();
  await service.close();
});

const sections = () => ({
  services: [rig.service("hub", service.url)],
  drops: [drop("in")],
  triggers: [
    trigger("first", { fileNamePatternMatches: [{ filterType: "StartsWith", value: "first" }] }),
    { from: "service", every: "1h" },
  ],
});

async function headgate(...args: string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  const command = [MAIN, ...args, "-c", rig.config];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: join(rig.folder) });
    return { code: 0, stdout };
  } catch (thrown) {
    const { code, stdout, stderr } = thrown as { code: number; stdout: string; stderr: string };
    return { code, stdout: stdout === "" ? stderr : stdout };
  }
}

it("headgate check reads the triggers of the service now, and says which cannot work", async () => {
  rig.put("in/a.csv", "x");
  rig.configure(sections());
  const { stdout } = await headgate("check", "--json");
  const found = (JSON.parse(stdout) as { part: string; level: string; about?: string; what: string }[]).map(
    ({ part, level, about, what }) => `${level} ${part} ${about ?? ""}: ${what}`,
  );
  expect(found).toContainEqual("ok service hub triggers: 4 listed, 3 of them active");
  expect(found).toContainEqual(expect.stringMatching(/^ok trigger hub:1 : mapper standard \S+ accepts its settings/));
  expect(found).toContainEqual(expect.stringMatching(/^warning trigger hub:2 : .*names the mapping ACME v2/));
  expect(found).toContainEqual(expect.stringMatching(/^warning trigger hub:3 : it cannot be read: triggerType/));
  expect(found.filter((line) => line.includes("hub:4"))).toEqual([]);
  expect(found).toContainEqual("ok drop in triggers: 1 would match trigger hub:1");
  service.state = "away";
  const away = await headgate("check", "--json");
  expect(away.code).toBe(1);
  expect(away.stdout).toContain("they cannot be read now, and none are kept");
});

it("commands know the triggers of the service that the gateway read last", async () => {
  rig.configure(sections());
  expect((await headgate("trigger", "test", "a.csv")).stdout).toContain("they are not known yet");
  await rig.open(sections());
  const test = JSON.parse((await headgate("trigger", "test", "a.csv", "first.csv", "--json")).stdout) as {
    claimedBy: string;
  }[];
  expect(test.map(({ claimedBy }) => claimedBy)).toEqual(["hub:1", "first"]);
  const packed = await headgate("trigger", "test", "a.csv.gz", "first.csv.zip", "--json");
  expect(JSON.parse(packed.stdout)).toMatchObject([
    { name: "a.csv.gz", container: "unpacked to a.csv", claimedBy: "hub:1" },
    { name: "first.csv.zip", container: expect.stringContaining("each file in it"), claimedBy: null, verdicts: [] },
  ]);
  expect((await headgate("trigger", "test", "a.csv.gz", "b.zip")).code).toBe(0);
  const { triggers, services } = JSON.parse((await headgate("trigger", "list", "--json")).stdout) as {
    triggers: { name: string; problem: string | null; mapping?: string }[];
    services: unknown[];
  };
  expect(triggers.map(({ name }) => name)).toEqual(["first", "hub:1", "hub:2", "hub:3", "hub:4"]);
  expect(triggers[2]).toMatchObject({ mapping: "ACME v2", problem: expect.stringContaining("no mapper for it here") });
  expect(services).toMatchObject([{ service: "hub", count: 4, listedAt: expect.any(String) }]);
  expect((await headgate("trigger", "list")).stdout).toContain("the triggers of the service hub: listed at");
  service.triggers = [];
  expect((await headgate("check", "--json")).stdout).toContain("the service lists none; the 4 of");
  expect((await headgate("pause", "hub:1")).stdout).toContain("the trigger hub:1 is paused");
  expect((await headgate("pause", "hub:9")).stdout).toContain("there is no drop or trigger hub:9; did you mean hub:1?");
});

it("headgate gateway --until-idle works from the triggers of the service, also while it is away", async () => {
  const variable = await rig.variable("a");
  rig.put("in/a.csv", oneReading(variable, 7));
  rig.configure({ ...sections(), triggers: { from: "service" } });
  const pass = () => headgate("gateway", "--until-idle", "--timeout", "60s");
  expect(await pass()).toMatchObject({ code: 0, stdout: expect.stringContaining("files 1: 1 delivered") });
  service.state = "away";
  rig.put("in/b.csv", oneReading(variable, 8, "2026-03-02T00:00:00Z"));
  expect(await pass()).toMatchObject({ code: 0, stdout: expect.stringContaining("files 1: 1 delivered") });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7, "2026-03-02": 8 });
  const { stdout } = await headgate("trace", "a.csv");
  expect(stdout).toMatch(/at service +\S+-1 stored: 1 stored \(0 replaced\), 0 discarded/);
  expect((await headgate("trace", "a.csv", "--no-service")).stdout).not.toContain("at service");
  rig.configure({ ...sections(), services: [rig.service("hub", "http://127.0.0.1:9")] });
  const away = await headgate("trace", "a.csv");
  expect(away).toMatchObject({ code: 0, stdout: expect.stringMatching(/at service +not known: \S/) });
});
