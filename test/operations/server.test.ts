import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { openLedger } from "../../src/ledger/open.ts";
import { GatewayMetrics } from "../../src/operations/metrics.ts";
import { type OperationsServer, startOperations, type WebhookAnswer } from "../../src/operations/server.ts";
import { type HealthPart, waitingFiles } from "../../src/operations/state-of-work.ts";
import { systemClock } from "../../src/support/clock.ts";
import { silentLog } from "../../src/support/log.ts";

let folder: string;
let ledger: Ledger;
let server: OperationsServer;
let health: HealthPart[];
let told: { body: string; signature: string | undefined }[];
let answer: WebhookAnswer;
const metrics = new GatewayMetrics(new Registry());

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  ledger = await openLedger(
    { kind: "sqlite", path: join(folder, "ledger.sqlite") },
    { clock: systemClock, onEvent: (event) => metrics.count(event) },
  );
  health = [{ part: "drop in", ready: true, reason: "looked through" }];
  told = [];
  answer = { status: "recorded" };
  server = await startOperations(
    { listen: "127.0.0.1:0", webhook: {} },
    {
      ledger,
      log: silentLog,
      metrics: metrics.registry,
      health: async () => health,
      waiting: () =>
        waitingFiles(
          ledger,
          [
            {
              drop: "in",
              waiting: [
                { path: "a/meters.csv", reason: "1 of 2 equal observations", waitingMs: 5, overdue: true },
              ],
              eventsArrive: false,
            },
          ],
          () => undefined,
          0,
        ),
      drops: () => [],
      receiveOutcome: async (body, signature) => {
        told.push({ body, signature });
        return answer;
      },
    },
  );
});
afterEach(async () => {
  await server.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

async function seeFile(): Promise<void> {
  const poll = await ledger.beginPoll("in");
  await poll.record([{ path: "a/meters.csv", size: 3, mtime: "1" }]);
  await poll.complete();
}

describe("the operator's interface", () => {
  it("is live even when it is not ready", async () => {
    health = [{ part: "drop in", ready: false, reason: "no route to host" }];
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
    const ready = await fetch(`${server.url}/health/ready`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({
      status: "not ready",
      parts: [{ reason: "no route to host" }],
    });
  });

  it("is ready when every part is", async () => {
    expect((await fetch(`${server.url}/health/ready`)).status).toBe(200);
  });

  it("counts what the ledger committed", async () => {
    await seeFile();
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toMatch(/headgate_events_total\{drop="in",event="arrival.settling"\} 1/);
  });

  it("traces a file by its name, and answers 404 for a name that nobody knows", async () => {
    await seeFile();
    const found = await fetch(`${server.url}/operations/trace/meters.csv`);
    expect(await found.json()).toMatchObject([{ arrival: { path: "a/meters.csv", state: "settling" } }]);
    const unknown = await fetch(`${server.url}/operations/trace/other.csv`);
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({ detail: expect.stringContaining("other.csv") });
  });

  it("says of each file on its way what it waits for, in the words of its drop", async () => {
    await seeFile();
    const waiting = await fetch(`${server.url}/operations/waiting`);
    expect(await waiting.json()).toMatchObject([
      {
        drop: "in",
        path: "a/meters.csv",
        state: "settling",
        reason: "1 of 2 equal observations",
        overdue: true,
        eventsArrive: false,
      },
    ]);
  });

  it("hands a webhook on with exactly the bytes that are signed", async () => {
    const body = '{ "operationId" : "x-1" }';
    const response = await fetch(`${server.url}/webhooks/outcome`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "x-headgate-signature": "t=1,v1=00" },
    });
    expect(response.status).toBe(200);
    expect(told).toEqual([{ body, signature: "t=1,v1=00" }]);
  });

  it("answers 401 with the reason to a webhook that is refused", async () => {
    answer = { status: "refused", reason: "the signature does not match" };
    const response = await fetch(`${server.url}/webhooks/outcome`, { method: "POST", body: "{}" });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ detail: "the signature does not match" });
  });

  it("answers a webhook about somebody else's operation with success, since sending it again would not help", async () => {
    answer = { status: "unknown" };
    expect((await fetch(`${server.url}/webhooks/outcome`, { method: "POST", body: "{}" })).status).toBe(200);
  });
});

describe("a port that is taken", () => {
  it("is named, with what to do", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    const port = typeof address === "object" ? address?.port : 0;
    const parts = {
      ledger,
      log: silentLog,
      metrics: metrics.registry,
      health: async () => [],
      waiting: async () => [],
      drops: () => [],
      receiveOutcome: async () => answer,
    };
    await expect(startOperations({ listen: `127.0.0.1:${port}`, webhook: {} }, parts)).rejects.toMatchObject({
      code: "HG-CONF-004",
      message: expect.stringContaining(`the port ${port} is taken by another program`),
    });
    await new Promise((resolve) => other.close(resolve));
  });
});
