/** Readings that a mapper gives when nobody waits for them, and a renamed column: by whole commands and a gateway. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { startReceiver } from "../hub/fixture.ts";
import { GatewayRig, trigger } from "../runs/gateway-rig.ts";
import { type Ended, headgate } from "./processes.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

/** By the mapper's name: its code, and what the refusal names. */
const WAYS = {
  timer: ["setTimeout(late, 20);", "lost: a timer"],
  awaited: ["void (async () => { for (let n = 0; n < 50; n += 1) await null; late(); })();", "`emit` was called after"],
  rows: ["void eachRow(file.csv({ columns: true }), late);", "lost: eachRow(…)"],
  reader: ["void (async () => { for await (const _ of file.csv()) late(); })();", "lost: a reader of the file"],
  tick: ["process.nextTick(late);", "`emit` was called after `map` had ended"],
} as const;
/** An event that nothing announces: it comes when the file is written. */
const EVENT = "void Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40).value.then(late);";
const AFTER = "`emit` was called after the file was written";

let rig: GatewayRig;
let variable = 0;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
beforeAll(async () => {
  rig = await GatewayRig.start();
  receiver = await startReceiver();
  variable = await rig.variable("late");
  rig.put("input.csv", "a\n1\n");
  for (const [name, [body]] of Object.entries(WAYS)) put(name, body);
  put("event", EVENT);
});
afterAll(async () => {
  await rig.close();
  receiver.close();
});

function put(name: string, body: string): void {
  const first = { variableId: variable, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] };
  const folder = join(rig.folder, "mappers", name, "cases/one");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "../../mapper.ts"),
    `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "${name}", summary: "of a test", version: "1.0.0",
  async map({ file, eachRow, emit }) {
    const give = (day) =>
      emit({ target: { variableId: ${variable} }, date: "2026-03-0" + day + "T00:00:00Z", value: day });
    const late = () => give(2);
    give(1);
    ${body}
  } });`,
  );
  writeFileSync(join(folder, "input.csv"), "a\n1\n");
  writeFileSync(join(folder, "expected.json"), JSON.stringify([first]));
}

const folder = () => ["--folder", join(rig.folder, "mappers")];
const map = (name: string): Promise<Ended> =>
  headgate(["map", join(rig.folder, "input.csv"), "-m", name, "--summary", ...folder()]);
const testMapper = (name: string): Promise<Ended> => headgate(["mapper", "test", name, ...folder()]);

describe("readings that nobody waits for", () => {
  it.each(Object.entries(WAYS))("refuse the file by `map` and `mapper test`: %s", async (name, [, words]) => {
    const mapped = await map(name);
    expect(mapped).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("HG-MAP-040") });
    expect(mapped.stderr).toContain(words);
    const tested = await testMapper(name);
    expect(tested).toMatchObject({ code: 1, stdout: expect.stringContaining("HG-MAP-040") });
  });

  it("fail both commands when they come after the file was written", async () => {
    const mapped = await map("event");
    expect(mapped.code).toBe(1);
    expect(mapped.stderr).toContain(AFTER);
    expect(await testMapper("event")).toMatchObject({ code: 1, stdout: expect.stringContaining(AFTER) });
  });
});

describe("a gateway whose mappers give readings too late", () => {
  let gateway: Gateway;
  const lines: string[] = [];
  const names = [...Object.keys(WAYS), "event"];
  beforeAll(async () => {
    // With its case the gateway would not take such a version at all.
    for (const name of names) rmSync(join(rig.folder, "mappers", name, "cases"), { recursive: true });
    rig.configure({
      triggers: names.map((name) =>
        trigger(name, { mapper: name, fileNamePatternMatches: [{ filterType: "StartsWith", value: name }] }),
      ),
      mappers: { folders: ["./mappers"] },
      notifications: {
        receivers: [{ name: "programs", kind: "webhook", url: receiver.url }],
        every: "0s",
        group: "0s",
      },
    });
    const log = createLog("warn", { write: (line) => void lines.push(line) });
    gateway = await startGateway(loadGatewayConfig(rig.config), { log });
  });
  afterAll(() => gateway.stop());

  it("quarantines each such file before anything of it is sent", async () => {
    for (const name of Object.keys(WAYS)) rig.put(`in/${name}.csv`, "a\n1\n");
    await until("all are quarantined", async () => {
      const runs = await gateway.ledger.recentRuns(20);
      return runs.filter(({ state }) => state === "quarantined").length === Object.keys(WAYS).length;
    });
    for (const run of await gateway.ledger.recentRuns(20)) {
      expect(run).toMatchObject({ state: "quarantined", reason: { code: "HG-MAP-040" }, points: { accepted: 0 } });
      expect(run.reason?.message).toContain(WAYS[run.path.replace(".csv", "") as keyof typeof WAYS][1]);
    }
    expect(await rig.stored(variable)).toEqual({});
  });

  it("marks the run, pauses the triggers of that version and notifies when they come after the file", async () => {
    rig.put("in/event.csv", "a\n1\n");
    await until("its trigger is paused", async () => (await gateway.ledger.pauses()).length > 0);
    const [run] = await gateway.ledger.recentRuns(1);
    expect(run).toMatchObject({ path: "event.csv", reason: { code: "HG-MAP-041" } });
    expect(await gateway.ledger.pauses()).toMatchObject([{ kind: "trigger", name: "event", by: "the gateway" }]);
    expect(lines.join("")).toContain(AFTER);
    await until("it is notified", () => receiver.received.some(({ text }) => text.includes('"kind":"paused"')));
  });
});

it("a renamed column refuses the file by `map`, with the nearest name", async () => {
  rig.put("renamed.csv", "Time,A kWh,B KWH\n2026-03-01T00:00:00Z,1,2\n");
  put("renamed", `await eachRow(file.csv({ columns: true }), (row) => give(row["B kWh"]));`);
  const mapped = await headgate(["map", join(rig.folder, "renamed.csv"), "-m", "renamed", ...folder()]);
  expect(mapped).toMatchObject({ code: 1, stdout: "" });
  expect(mapped.stderr).toMatch(/the header has no column "B kWh"[\s\S]*Is "B KWH" meant\?/);
});
