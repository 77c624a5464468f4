/** The hub as a real process, killed as a power cut would at its named fault points. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { breakStore, createChain, type HubCalls, temporaryDirectory, until } from "./fixture.ts";
import { HubProcess } from "./hub-process.ts";

const hubProcess = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await end("SIGKILL");
  await directory.remove();
});

const run = (fault?: string): Promise<HubCalls> => hubProcess.run(directory.path, fault);
const end = (signal: NodeJS.Signals): Promise<void> => hubProcess.end(signal);
const killed = (): Promise<string | null> => hubProcess.killed();

const data = Array.from({ length: 500 }, (_, value) => ({
  date: new Date(Date.UTC(2026, 2, 1) + value * 900_000).toISOString(),
  value,
}));

async function prepare(): Promise<number> {
  const hub = await run();
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
  await end("SIGTERM");
  return variableIds[0] ?? 0;
}

/** Every reading has exactly one version. */
async function expectOnce(hub: HubCalls, variableId: number): Promise<void> {
  await hub.settled("op");
  const rows = await hub.get("/data", { VariableId: variableId, AllVersions: true });
  expect(rows.map((row: { rawValue: number }) => row.rawValue)).toEqual(data.map(({ value }) => value));
}

test.each(["hub.push.answered", "hub.ingest.before", "hub.ingest.after"])(
  "a hub killed at %s, after it accepted a push, stores every reading once when it starts again",
  async (fault) => {
    const variableId = await prepare();
    const dying = await run(fault);
    const body = [{ variableId, data }];
    const [answer] = await Promise.allSettled([dying.post("/push/api/data", body, { query: { operationId: "op" } })]);
    expect(await killed()).toBe("SIGKILL");
    // Ingestion is another thread, which may begin before the 200 is sent.
    if (fault === "hub.push.answered" || answer.status === "fulfilled")
      expect(answer).toMatchObject({ value: { operationId: "op", status: "accepted", received: 500 } });
    await expectOnce(await run(), variableId);
  },
);

test("a hub killed before its 200 stores a push once after a repetition under its Idempotency-Key", async () => {
  const variableId = await prepare();
  const dying = await run("hub.push.durable");
  const more = {
    body: [{ variableId, data }],
    query: { operationId: "op" },
    headers: { "idempotency-key": "k" },
  };
  await expect(dying.call("POST", "/push/api/data", more)).rejects.toThrow();
  expect(await killed()).toBe("SIGKILL");
  const hub = await run();
  expect(await hub.ok("POST", "/push/api/data", more)).toMatchObject({ operationId: "op", received: 500 });
  await expectOnce(hub, variableId);
});

test("a hub killed at random instants under a stream of pushes keeps every acknowledged push, once", async () => {
  const variableId = await prepare();
  const answered: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    const hub = await run();
    const last = 1 + Math.floor(Math.random() * 40);
    let dying: Promise<void> | null = null;
    for (let index = 0; dying === null || index < last + 20; index += 1) {
      const name = `${round}-${index}`;
      const elements = [{ variableId, version: name, data: [{ date: dateOf(round, index), value: index }] }];
      const sent = hub.post("/push/api/data", elements, { query: { operationId: name } });
      if (index === last) dying = killSoon();
      // What was not answered is not owed.
      const wasAnswered = await sent.then(
        () => true,
        () => false,
      );
      if (wasAnswered) answered.push(name);
      else break;
    }
    await dying;
  }
  expect(answered.length).toBeGreaterThanOrEqual(3);
  const hub = await run();
  await Promise.all(answered.map((name) => hub.settled(name)));
  const rows = await hub.get("/data", { VariableId: variableId, AllVersions: true });
  const versions = rows.map((row: { version: string }) => row.version);
  expect(new Set(versions).size).toBe(versions.length);
  expect(versions).toEqual(expect.arrayContaining(answered));
  expect(versions.length - answered.length).toBeLessThanOrEqual(3);
}, 90_000);

async function killSoon(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 8));
  await end("SIGKILL");
}

function dateOf(round: number, index: number): string {
  return new Date(Date.UTC(2026, round, 1) + index * 60_000).toISOString();
}

test(
  "a hub killed when an operation has failed keeps its body, and stores it once when it is applied " + "again",
  async () => {
    const variableId = await prepare();
    const { mended } = await breakStore(directory.path, 42);
    const dying = await run("hub.ingest.failed");
    await dying.post("/push/api/data", [{ variableId, data }], { query: { operationId: "op" } });
    expect(await killed()).toBe("SIGKILL");
    await mended();
    const hub = await run();
    expect(await until(async () => (await hub.get("/operations", { State: "failed" }))[0])).toMatchObject({
      operationId: "op",
      status: "failed",
    });
    expect(await hub.ok("POST", "/operations/op")).toMatchObject({ waiting: 1 });
    await until(async () => ((await hub.get("/operations/op")).stored === 500 ? true : undefined));
    await expectOnce(hub, variableId);
  },
);

test("SIGTERM ends the process cleanly in the middle of work", async () => {
  const variableId = await prepare();
  const hub = await run();
  await hub.post("/push/api/data", [{ variableId, data }], { query: { operationId: "op" } });
  await end("SIGTERM");
  expect(hubProcess.child?.exitCode).toBe(0);
  await expectOnce(await run(), variableId);
});

const points = Array.from({ length: 3_000 }, (_, value) => ({
  date: new Date(Date.UTC(2026, 1, 1) + value * 900_000).toISOString(),
  value,
}));

test.each(["hub.ingest.before", "hub.ingest.after", "hub.pack.before", "hub.pack.after"])(
  "a hub killed at %s keeps each point of blocks and rows once, also one that is corrected in a block",
  async (fault) => {
    const hub = await run();
    const { variableIds } = await createChain(hub, { variables: [{}] });
    const [variableId = 0] = variableIds;
    await hub.push([{ variableId, data: points }]);
    await end("SIGTERM");
    const dying = await run(fault);
    // A point with a tag makes rows of its block, which is packed again.
    const labels = fault.startsWith("hub.pack") ? { tags: { kept: "as a row" } } : {};
    const body = [{ variableId, data: [{ date: points[700]?.date, value: -1, ...labels }] }];
    // A hub that is killed between two parts of its work may not answer.
    await dying.post("/push/api/data", body, { query: { operationId: "late" } }).catch(() => null);
    expect(await killed()).toBe("SIGKILL");
    const living = await run();
    await living.push(body);
    const rows = await living.get("/data", { VariableId: variableId });
    expect(rows.map((row: { rawValue: number }) => row.rawValue)).toEqual(
      points.map(({ value }) => (value === 700 ? -1 : value)),
    );
  },
);
