/** The operator's commands beside a gateway that runs, and without one. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { askOperations } from "../support/operations.ts";
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
      isAt: "bad.csv",
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
    const health = async () => (await (await askOperations(again, "/health/ready")).json()) as unknown;
    expect(await health()).toMatchObject({
      status: "ready",
      parts: expect.arrayContaining([
        { part: "drop in", ready: true, reason: expect.stringContaining("by ann: the server moves") },
      ]),
    });
    const metrics = await (await askOperations(again, "/metrics")).text();
    expect(metrics).toContain('headgate_paused{kind="drop",name="in"} 1');
    expect(await again.isIdle()).toBe(true);
    expect(await again.ledger.arrivalsAt("late.csv")).toEqual([]);
    expect(await json("resume", "in")).toEqual({ wasPaused: true });
    await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    expect(await json("resume", "in")).toEqual({ wasPaused: false });
  });

  it("a paused trigger claims nothing; its files wait until it resumes, whatever the rule for unmatched", async () => {
    const variable = await rig.variable("a");
    const sections = { drops: [drop("in", { finish: { unmatched: "delete" } })] };
    await rig.open(sections);
    await json("pause", "standard", "--reason", "wrong factor", "--by", "ann");
    rig.put("in/a.csv", oneReading(variable, 5));
    const gateway = await rig.open(sections);
    await until("the file is seen", async () => (await gateway.ledger.arrivalsIn("in", ["unmatched"])).length === 1);
    const waiting = await (await askOperations(gateway, "/operations/waiting")).json();
    expect(waiting).toMatchObject({
      files: [{ path: "a.csv", reason: expect.stringContaining("wrong factor") }],
      total: 1,
    });
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
    const answer = await json("cancel", id, "--yes", "--reason", "wrong month", "--by", "ann");
    expect(answer).toMatchObject({ was: "delivering", unknown: [`${id}-1`] });
    const run = await gateway.ledger.run(id);
    expect(run).toMatchObject({
      state: "cancelled",
      reason: {
        message: expect.stringMatching(/cancelled by ann: wrong month; the outcome of operation .* is not known/),
      },
    });
    expect(existsSync(join(rig.folder, "in/a.csv"))).toBe(true);
    const twice = await headgate("cancel", id, "--yes");
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-RUN-011") });
    const unknown = await headgate("cancel", "nothing", "--yes");
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("HG-CLI-002") });
    failing.closeAllConnections();
    failing.close();
  });

  it("takes names of files, shows what it would do, and does nothing where nobody says yes", async () => {
    rig.put("in/a.csv", oneReading(await rig.variable("a"), 1));
    AWAY.services = [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }];
    const gateway = await rig.open(AWAY);
    const id = await sentOnce(gateway);
    const unsaid = await headgate("cancel", "a.csv");
    expect(unsaid).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
    expect(unsaid.stdout).toContain(`run ${id} of a.csv at in is delivering`);
    expect((await gateway.ledger.run(id))?.state).toBe("delivering");
    expect(await headgate("cancel", "b.csv", "--yes")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the ledger knows no run or file b.csv"),
    });
    expect(await json("cancel", "a.csv", "--yes")).toMatchObject({ run: id, was: "delivering" });
  });

  it("of what cannot have come to the service says nothing of an outcome", async () => {
    rig.put("in/a.csv", oneReading(await rig.variable("a"), 1));
    AWAY.services = [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }];
    // No attempt is under way when it is given up: of one that is cut off nobody knows how far it came.
    const push = { retry: { initial: "60s", max: "60s" } };
    const id = await sentOnce(await rig.open({ ...AWAY, push }));
    expect(await json("cancel", id, "--yes")).toMatchObject({ was: "delivering", unknown: [] });
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

describe("runs", () => {
  it("shows a file whose bytes came before as a duplicate, and lists duplicates and runs given up apart", async () => {
    const content = oneReading(await rig.variable("a"), 1);
    rig.put("in/a.csv", content);
    const gateway = await rig.open({});
    const standing = async () => (await gateway.ledger.recentRuns(9)).map(({ state }) => state);
    await until("it is delivered", async () => (await gateway.isIdle()) && (await standing())[0] === "confirmed");
    rig.put("in/a.csv", content, new Date("2026-03-02T00:00:00Z"));
    await until("it came again", async () => (await gateway.isIdle()) && (await standing()).length === 2);
    const { stdout } = await headgate("runs");
    expect(stdout).toMatch(/a\.csv +duplicate +the same bytes came before/);
    expect(await json("runs", "--state", "duplicate")).toHaveLength(1);
    expect(await json("runs", "--state", "cancelled")).toEqual([]);
    expect((await headgate("trace", "a.csv")).stdout).toMatch(/run \w+\s+duplicate/);
  });
});

describe("forget", () => {
  it("has a file taken again as if it were new, beside a gateway and without one", async () => {
    const variable = await rig.variable("a", true);
    rig.put("in/a.csv", oneReading(variable, 1));
    const gateway = await rig.open({ drops: [drop("in", { finish: { delivered: "leave" } })] });
    const runs = async () => (await gateway.ledger.recentRuns(9, ["confirmed"])).map(({ id }) => id);
    await until("it is delivered", async () => (await runs()).length === 1 && (await gateway.isIdle()));
    const [before] = await runs();
    const known = { drop: "in", path: "a.csv", arrivals: 1, runs: [before], acceptedPoints: 1 };
    expect(await json("forget", "a.csv", "--dry-run")).toMatchObject(known);
    const unsaid = await headgate("forget", "a.csv");
    expect(unsaid).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
    expect(unsaid.stdout).toContain("1 point of it had been accepted");
    expect(await runs()).toEqual([before]);
    expect(await json("forget", "a.csv", "--yes", "--by", "ann", "--reason", "wrong zone")).toMatchObject(known);
    await until("it is delivered again", async () => (await runs()).length === 1 && (await gateway.isIdle()));
    expect((await runs())[0]).not.toBe(before);
    await gateway.stop();
    const { stdout, code } = await headgate("forget", join(rig.folder, "in/a.csv"), "--yes");
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("next start") });
    expect((await headgate("forget", "a.csv", "--yes")).code).toBe(1);
    // Who did it, when and why stays.
    const [last, first] = await json("trace", "a.csv");
    expect(first).toMatchObject({ forgotten: { ...known, by: "ann", why: "wrong zone" } });
    expect(last).toMatchObject({ forgotten: { arrivals: 1, acceptedPoints: 1 } });
    const life = await headgate("trace", "a.csv");
    expect(life).toMatchObject({ code: 0, stdout: expect.stringContaining("by ann: wrong zone") });
  });
});

describe("the door of the daemon", () => {
  it("refuses requests without the secret, which only the owner can read and which ends with the gateway", async () => {
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
