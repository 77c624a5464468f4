/** The operator's commands beside a gateway that runs, and without one. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate as run } from "./in-process.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const config = () => join(rig.folder, "gateway.yaml");
const headgate = (...args: string[]) => run(...args, "-c", config());
async function json(...args: string[]) {
  const { stdout, stderr, code } = await headgate(...args, "--json");
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}
/** A service that is not what it should be. */
const AWAY = { services: [] as unknown[] };

describe("quarantine", () => {
  it("tells file, place, reason and how to go on, until a newer version has come", async () => {
    const variable = await rig.variable("a");
    rig.put("in/bad.csv", `variable_id,date,value\n${variable},2026-03-01T00:00:00Z,many\n`);
    const gateway = await rig.open({});
    await until("it is idle", () => gateway.isIdle());
    const [one] = await json("quarantine");
    expect(one).toMatchObject({
      file: "bad.csv",
      drop: "in",
      state: "quarantined",
      place: { row: 2, column: "value" },
      lies: "bad.csv",
      next: [expect.stringContaining("headgate trace"), expect.stringContaining("headgate replay")],
    });
    const { stdout } = await headgate("quarantine");
    expect(stdout).toContain("row 2, column value");
    rig.put("in/bad.csv", oneReading(variable, 1), new Date("2026-03-02T00:00:00Z"));
    await until(
      "the new version is delivered",
      async () => (await gateway.isIdle()) && (await rig.stored(variable))["2026-03-01"] === 1,
    );
    expect(await json("quarantine")).toEqual([]);
    expect(await json("quarantine", "--all")).toHaveLength(1);
  });
});

describe("pausing", () => {
  it("a paused drop is not polled, also after a restart, and says so everywhere", async () => {
    const variable = await rig.variable("a");
    const gateway = await rig.open({});
    await until("it is idle", () => gateway.isIdle());
    expect(await json("pause", "in", "--reason", "the server moves", "--by", "ann")).toMatchObject({
      kind: "drop",
      by: "ann",
    });
    rig.put("in/late.csv", oneReading(variable, 1));
    const again = await rig.open({});
    const health = async () => (await (await fetch(`${again.operationsUrl}/health/ready`)).json()) as unknown;
    expect(await health()).toMatchObject({
      status: "ready",
      parts: expect.arrayContaining([
        { part: "drop in", ready: true, reason: expect.stringContaining("by ann: the server moves") },
      ]),
    });
    const metrics = await (await fetch(`${again.operationsUrl}/metrics`)).text();
    expect(metrics).toContain('headgate_paused{kind="drop",name="in"} 1');
    expect(await again.isIdle()).toBe(true);
    expect(await again.ledger.arrivalsAt("late.csv")).toEqual([]);
    expect(await json("resume", "in")).toEqual({ wasPaused: true });
    await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    expect(await json("resume", "in")).toEqual({ wasPaused: false });
  });

  it("a paused trigger claims nothing; its files wait, whatever the rule for unmatched ones, and go on with it", async () => {
    const variable = await rig.variable("a");
    const sections = { drops: [drop("in", { finish: { unmatched: "delete" } })] };
    await rig.open(sections);
    await json("pause", "standard", "--reason", "wrong factor", "--by", "ann");
    rig.put("in/a.csv", oneReading(variable, 5));
    const gateway = await rig.open(sections);
    await until(
      "the file is seen",
      async () => (await gateway.ledger.arrivalsIn("in", ["unmatched"])).length === 1,
    );
    const waiting = await (await fetch(`${gateway.operationsUrl}/operations/waiting`)).json();
    expect(waiting).toMatchObject([{ path: "a.csv", reason: expect.stringContaining("wrong factor") }]);
    expect(existsSync(join(rig.folder, "in/a.csv"))).toBe(true);
    await json("resume", "standard");
    await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 5);
  });

  it("refuses names that nobody has", async () => {
    await rig.open({});
    const { code, stderr } = await headgate("pause", "inn");
    expect(code).toBe(2);
    expect(stderr).toContain("did you mean in?");
  });
});

describe("cancel", () => {
  it("ends a run that waits for the service, whose later files go on, and keeps what is known of it", async () => {
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 1));
    const failing = createServer((request, response) => {
      request.resume();
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => failing.listen(0, "127.0.0.1", resolve));
    const { port } = failing.address() as AddressInfo;
    AWAY.services = [{ ...rig.service("hub"), push: `http://127.0.0.1:${port}/push` }];
    const gateway = await rig.open(AWAY);
    const id = await sentOnce(gateway);
    const answer = await json("cancel", id, "--reason", "wrong month", "--by", "ann");
    expect(answer).toMatchObject({ was: "delivering", unknown: [`${id}-1`] });
    const run = await gateway.ledger.run(id);
    expect(run).toMatchObject({
      state: "cancelled",
      reason: {
        message: expect.stringMatching(
          /cancelled by ann: wrong month; the outcome of operation .* is not known/,
        ),
      },
    });
    expect(existsSync(join(rig.folder, "in/a.csv"))).toBe(true);
    const twice = await headgate("cancel", id);
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-011") });
    const unknown = await headgate("cancel", "nothing");
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-CLI-002") });
    failing.closeAllConnections();
    failing.close();
  });

  it("of what cannot have come to the service says nothing of an outcome", async () => {
    rig.put("in/a.csv", oneReading(await rig.variable("a"), 1));
    AWAY.services = [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }];
    const id = await sentOnce(await rig.open(AWAY));
    expect(await json("cancel", id)).toMatchObject({ was: "delivering", unknown: [] });
  });
});

async function sentOnce({ ledger }: Awaited<ReturnType<GatewayRig["open"]>>): Promise<string> {
  let id = "";
  await until("it was sent, and that did not go well", async () => {
    const [run] = await ledger.recentRuns(1, ["delivering"]);
    id = run?.id ?? "";
    return id !== "" && run?.reason !== null;
  });
  return id;
}

describe("forget", () => {
  it("has a file taken again as if it were new, beside a gateway and without one", async () => {
    const variable = await rig.variable("a", true);
    rig.put("in/a.csv", oneReading(variable, 1));
    const gateway = await rig.open({ drops: [drop("in", { finish: { delivered: "leave" } })] });
    const runs = async () => (await gateway.ledger.recentRuns(9, ["confirmed"])).map(({ id }) => id);
    await until("it is delivered", async () => (await runs()).length === 1 && (await gateway.isIdle()));
    const [before] = await runs();
    expect(await json("forget", "a.csv")).toMatchObject({ runs: [before], acceptedPoints: 1 });
    await until("it is delivered again", async () => (await runs()).length === 1 && (await gateway.isIdle()));
    expect((await runs())[0]).not.toBe(before);
    await gateway.stop();
    const { stdout, code } = await headgate("forget", join(rig.folder, "in/a.csv"));
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("next start") });
    expect((await headgate("forget", "a.csv")).code).toBe(1);
  });
});

describe("the door of the daemon", () => {
  it("is closed to whoever does not know the secret, which is the owner's alone and goes with the gateway", async () => {
    const gateway = await rig.open({ triggers: [trigger("standard")] });
    const order = { order: "pause", kind: "drop", name: "in", by: "eve", why: "" };
    for (const headers of [{}, { authorization: "Bearer guess" }]) {
      const answer = await fetch(`${gateway.operationsUrl}/operations/orders`, {
        method: "POST",
        headers,
        body: JSON.stringify(order),
      });
      expect(answer.status).toBe(401);
    }
    expect(await gateway.ledger.pauses()).toEqual([]);
    const sign = join(rig.folder, "state/ledger.sqlite.daemon");
    expect(statSync(sign).mode & 0o077).toBe(0);
    const { secret } = JSON.parse(readFileSync(sign, "utf8"));
    const nonsense = await fetch(`${gateway.operationsUrl}/operations/orders`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: JSON.stringify({ ...order, order: "destroy" }),
    });
    expect(nonsense.status).toBe(409);
    await gateway.stop();
    expect(existsSync(sign)).toBe(false);
  });
});
