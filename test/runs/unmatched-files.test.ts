/** A file that no trigger claims: everywhere where an operator may look, once, and never for what may lie there. */
import { once } from "node:events";
import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let rig: GatewayRig;
let lines: string[];
beforeEach(async () => {
  lines = [];
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const warnings = () => lines.filter((line) => line.includes('"HG-TRIG-001"')).map((line) => JSON.parse(line));
const log = () => createLog("warn", { write: (line) => void lines.push(line) });

async function asked(gateway: Gateway, path: string): Promise<Response> {
  return await fetch(gateway.operationsUrl + path, { headers: { authorization: `Bearer ${gateway.operationsToken}` } });
}

async function stateOf(gateway: Gateway, path: string): Promise<string | undefined> {
  return (await gateway.ledger.trace(path))[0]?.arrival.state;
}

async function listed(): Promise<readonly object[]> {
  return JSON.parse((await headgate("quarantine", "-c", rig.config, "--json")).stdout);
}

const NAME = "README from the installer.txt";

test("a name whose letters and accents are apart is claimed as it reads, and stays as it is listed", async () => {
  const variable = await rig.variable("forms");
  const [apart, composed] = ["Za\u0308hler", "Z\u00e4hler"];
  const claims = trigger("meters", { fileNamePatternMatches: [{ filterType: "StartsWith", value: composed }] });
  const gateway = await rig.open({
    drops: [drop("in", { include: [`${composed}*`, "*.txt"], expectUnmatched: [`*${composed}.txt`] })],
    triggers: [claims],
  });
  rig.put(`in/${apart}.csv`, oneReading(variable, 1));
  rig.put(`in/the ${apart}.txt`, "a note");
  await until("it is claimed", async () => (await stateOf(gateway, `${apart}.csv`)) === "matched");
  await until("the other is seen", async () => (await stateOf(gateway, `the ${apart}.txt`)) === "unmatched");
  expect(await listed()).toEqual([]);
  const both = `it is listed as Za‹U+0308›hler.csv, and matched as ${composed}.csv (Unicode NFC)`;
  expect((await headgate("trace", `${apart}.csv`, "-c", rig.config)).stdout).toContain(both);
  expect((await headgate("trigger", "test", `${apart}.csv`, "-c", rig.config)).stdout).toContain(both);
  const [file] = await gateway.ledger.trace(`${apart}.csv`);
  const page = await (await asked(gateway, `/operations/files/${file?.arrival.id}`)).json();
  expect(page).toMatchObject({ forms: both, arrival: { path: `${apart}.csv` } });
});

test("lists that are cut say how many there are, and runs continue where the part before ended", async () => {
  const variable = await rig.variable("lists");
  const gateway = await rig.open({});
  for (const name of ["a", "b", "c"]) rig.put(`in/${name}.txt`, "a note");
  for (const name of ["a", "b", "c"]) rig.put(`in/${name}.csv`, oneReading(variable, 1));
  await until("all are seen", async () => (await gateway.ledger.countArrivals("in", ["unmatched"])) === 3);
  await until("all are delivered", async () => (await gateway.ledger.countRuns(["confirmed"])) === 3);
  const lists = (...args: string[]) => headgate(...args, "-c", rig.config);
  expect((await lists("runs", "--waiting", "--limit", "2")).stdout).toContain("2 of 3 files that wait; `--limit 3`");
  expect((await lists("runs", "--waiting", "--limit", "2", "--json")).stderr).toContain("2 of 3 files that wait");
  expect((await lists("quarantine", "--limit", "2")).stdout).toContain("`--limit 3` shows all");
  const first = await lists("runs", "--limit", "2", "--json");
  const ids = JSON.parse(first.stdout).map(({ id }: { id: string }) => id);
  expect(first.stderr).toContain(`2 of 3 runs; \`--after ${ids[1]}\``);
  const rest = JSON.parse((await lists("runs", "--after", ids[1], "--json")).stdout);
  expect(rest).toHaveLength(1);
  expect(ids).not.toContain(rest[0].id);
  expect((await lists("runs", "--state", "confirmed", "--after", ids[1])).stdout).toContain(rest[0].id);
});

describe("a file that no trigger claims", () => {
  test("is reported everywhere, once, with the reason", async () => {
    const told: string[] = [];
    const receiver = createServer((request, response) => {
      request.setEncoding("utf8").on("data", (part) => void told.push(part));
      request.on("end", () => response.end());
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const notifications = {
      ...{ every: "0s", group: "0s" },
      receivers: [{ name: "programs", kind: "webhook", url }],
    };
    const sections = { drops: [drop("in", { expectUnmatched: ["*.log", "**/notes/*"] })], notifications };
    rig.put(`in/${NAME}`, "read me");
    rig.put("in/logger.log", "a line");
    rig.put("in/2026/notes/one.txt", "a note");
    let gateway = await rig.open(sections, log());
    await until("all are seen", async () => {
      const states = await Promise.all([NAME, "logger.log", "2026/notes/one.txt"].map((one) => stateOf(gateway, one)));
      return states.every((state) => state === "unmatched");
    });

    await until("the log tells", async () => warnings().length > 0);
    expect(warnings()).toMatchObject([
      { drop: "in", count: 1, files: [NAME], reason: expect.stringMatching("EndsWith") },
    ]);
    expect(await listed()).toMatchObject([{ file: NAME, state: "unmatched", run: null, code: "HG-TRIG-001" }]);
    const { parts } = (await (await asked(gateway, "/health/ready")).json()) as { parts: readonly object[] };
    expect(parts).toContainEqual({
      ...{ part: "unmatched files at in", ready: true },
      reason: `no trigger claims 1 file: ${NAME}; \`headgate quarantine\` says why`,
    });
    expect(await (await asked(gateway, "/metrics")).text()).toContain('headgate_files_unmatched{drop="in"} 1');
    expect(await (await asked(gateway, "/operations/attention")).json()).toMatchObject({
      groups: [{ kind: "unmatched", count: 1, hint: expect.stringContaining("expectUnmatched") }],
    });
    // It is told when the gateway stops at the latest; a file that is written to again is the same matter.
    await gateway.stop();
    gateway = await rig.open(sections, log());
    appendFileSync(join(rig.folder, "in", NAME), ", please");
    await until("it is seen again", async () => (await gateway.ledger.trace(NAME))[0]?.arrival.size === 15);
    await until("it has settled", async () => (await stateOf(gateway, NAME)) === "unmatched");
    await gateway.stop();
    receiver.close();
    const bodies = told.map((body) => JSON.parse(body));
    expect(bodies).toMatchObject([
      {
        counts: { unmatched: 1 },
        items: [{ kind: "unmatched", file: NAME, reason: expect.stringMatching("EndsWith") }],
      },
    ]);
  });

  test("is left at the drop where it is expected, whatever the rule for unmatched files", async () => {
    rig.put("in/README.txt", "read me");
    rig.put("in/other.txt", "what is this");
    const finish = { unmatched: "delete", guard: "0s" };
    const gateway = await rig.open({ drops: [drop("in", { expectUnmatched: ["README*"], finish })] }, log());
    await until("the other is deleted", async () => !existsSync(join(rig.folder, "in/other.txt")));
    await until("it is seen", async () => (await stateOf(gateway, "README.txt")) === "unmatched");
    expect((await gateway.ledger.trace("README.txt"))[0]?.arrival).toMatchObject({
      reason: expect.stringMatching(/^it is expected here \(`expectUnmatched` of the drop: README\*\)/),
    });
    expect(existsSync(join(rig.folder, "in/README.txt"))).toBe(true);
    expect(warnings()).toMatchObject([{ files: ["other.txt"] }]);
  });

  test("only waits while its trigger is paused, and needs a person when the trigger is given up", async () => {
    const variable = await rig.variable("paused");
    const gateway = await rig.open({}, log());
    await headgate("pause", "standard", "-c", rig.config);
    rig.put("in/later.csv", oneReading(variable, 1));
    await until("it is seen", async () => (await stateOf(gateway, "later.csv")) === "unmatched");
    expect(await listed()).toEqual([]);
    expect(warnings()).toEqual([]);
    const next = await rig.open({ triggers: [trigger("other", { fileNamePatternMatches: [OTHER] })] }, log());
    await until("it needs a person", async () => (await listed()).length === 1);
    await until("the log tells", async () => warnings().length > 0);
    expect(warnings()).toMatchObject([{ files: ["later.csv"] }]);
    expect(await stateOf(next, "later.csv")).toBe("unmatched");
  });

  const OTHER = { filterType: "EndsWith", value: ".xlsx" };
});
