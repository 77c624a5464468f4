import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createLog, silentLog } from "#core/log.ts";
import { keepSecret } from "#core/secrets.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { WebhookAnswer } from "#gateway/operations/application.ts";
import { GatewayMetrics } from "#gateway/operations/metrics.ts";
import { type OperationsServer, startOperations } from "#gateway/operations/server.ts";
import { type HealthPart, waitingFiles } from "#gateway/operations/state-of-work.ts";
import { claimed } from "../ledger/fixtures.ts";

let folder: string;
let ledger: Ledger;
let server: OperationsServer;
let health: HealthPart[];
let told: { body: string; signature: string | undefined }[];
let answer: WebhookAnswer;
let looks: number;
let lines: { level: string; msg: string; refused?: number }[];
const metrics = new GatewayMetrics(new Registry());

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  ledger = await openLedger(
    { kind: "sqlite", path: join(folder, "ledger.sqlite") },
    { clock: systemClock, onEvent: (event) => metrics.count(event) },
  );
  health = [{ part: "drop in", ready: true, reason: "looked through" }];
  told = [];
  looks = 0;
  lines = [];
  answer = { status: "recorded" };
  server = await startOperations(
    {
      listen: "127.0.0.1:0",
      webhook: {},
      access: {
        tokens: [
          { name: "prometheus", token: METRICS_TOKEN, rights: ["metrics"] },
          { name: "script", token: READ_TOKEN, rights: ["read"] },
        ],
      },
    },
    {
      ledger,
      log: createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) }),
      metrics: metrics.registry,
      health: async () => {
        looks += 1;
        return health;
      },
      waiting: (query) =>
        waitingFiles(
          ledger,
          [
            {
              drop: "in",
              waiting: [
                { path: "a/meters.csv", reason: "1 of 2 equal observations", waitingMs: 5, since: "", overdue: true },
              ],
              eventsArrive: false,
              paused: null,
            },
          ],
          () => undefined,
          [],
          0,
          query,
        ),
      receiveOutcome: async (body, signature) => {
        told.push({ body, signature });
        return answer;
      },
      commands: { secret: SECRET, execute: async (order) => ({ taken: order }) },
    },
  );
});
afterEach(async () => {
  await server.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const SECRET = "the secret of the endpoint file";
const METRICS_TOKEN = "a token for the metrics";
const READ_TOKEN = "a token for reading";

function ask(path: string, token: string | null = SECRET, init: RequestInit = {}): Promise<Response> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${server.url}${path}`, { headers, ...init });
}

async function seeFile(): Promise<void> {
  const poll = await ledger.beginPoll("in");
  await poll.record([{ path: "a/meters.csv", size: 3, mtime: "1" }]);
  await poll.complete();
}

describe("the operator's interface", () => {
  it("is live even when it is not ready", async () => {
    health = [{ part: "drop in", ready: false, reason: "no route to host" }];
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
    const ready = await ask("/health/ready");
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({
      status: "not ready",
      parts: [{ reason: "no route to host" }],
    });
  });

  it("is ready when every part is", async () => {
    expect((await fetch(`${server.url}/health/ready`)).status).toBe(200);
  });

  it("counts the commits of the ledger", async () => {
    await seeFile();
    const text = await (await ask("/metrics")).text();
    expect(text).toMatch(/headgate_events_total\{drop="in",event="arrival.settling"\} 1/);
  });

  it("keeps the names of metrics where a password is part of them", async () => {
    keepSecret("headgate_events");
    await seeFile();
    expect(await (await ask("/metrics")).text()).toMatch(/^headgate_events_total\{/m);
  });

  it("traces a file by its name, and answers 404 for an unknown name", async () => {
    await seeFile();
    const found = await ask("/operations/trace/meters.csv");
    expect(await found.json()).toMatchObject({
      files: [{ arrival: { path: "a/meters.csv", state: "settling" } }],
      total: 1,
    });
    const unknown = await ask("/operations/trace/other.csv");
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({ detail: expect.stringContaining("other.csv") });
  });

  it("reports for each file in progress why it waits, in the words of its drop", async () => {
    await seeFile();
    const waiting = await ask("/operations/waiting");
    const file = {
      ...{ drop: "in", path: "a/meters.csv", state: "settling", reason: "1 of 2 equal observations" },
      ...{ overdue: true, eventsArrive: false },
    };
    expect(await waiting.json()).toMatchObject({ files: [file], total: 1, next: null });
    expect((await ask("/operations/waiting?after=in")).status).toBe(400);
    expect(await (await ask("/operations/waiting?after=in:1")).json()).toEqual({ files: [], total: 1, next: null });
  });

  it("lists runs in parts, with the number of all in the states asked for", async () => {
    const runs: string[] = [];
    for (const path of ["a.csv", "b.csv", "c.csv"]) runs.unshift((await claimed(ledger, path)).id);
    await ledger.advanceRun(runs[0] ?? "", "claimed", "cancelled", { detail: "" });
    const list = async (query: string) => {
      const { runs: some, ...more } = await (await ask(`/operations/runs?${query}`)).json();
      return { ids: (some as { id: string }[]).map(({ id }) => id), ...more };
    };
    expect(await list("limit=2")).toEqual({ ids: runs.slice(0, 2), total: 3, next: runs[1] });
    expect(await list(`limit=2&after=${runs[1]}`)).toEqual({ ids: runs.slice(2), total: 3, next: null });
    expect(await list("state=claimed&limit=1")).toEqual({ ids: [runs[1]], total: 2, next: runs[1] });
  });

  it("passes on a webhook with exactly the signed bytes", async () => {
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

  it("warns once of refused webhooks, however many a stranger sends and whatever their content", async () => {
    answer = { status: "refused", reason: "the signature does not match" };
    const post = (body: string) => fetch(`${server.url}/webhooks/outcome`, { method: "POST", body });
    for (let sent = 0; sent < 20; sent++) expect((await post("{}")).status).toBe(401);
    expect((await post("x".repeat(4_000_001))).status).toBe(413);
    const warned = lines.filter(({ level }) => level !== "info");
    expect(warned).toMatchObject([{ msg: "webhooks were refused", refused: 1 }]);
    expect(lines).toHaveLength(2); // The other one says where the server listens.
  });

  it("answers a webhook about an unknown operation with success, since a repetition would not help", async () => {
    answer = { status: "unknown" };
    expect((await fetch(`${server.url}/webhooks/outcome`, { method: "POST", body: "{}" })).status).toBe(200);
  });
});

describe("without credentials", () => {
  it.each([
    "/metrics",
    "/operations/runs",
    "/operations/waiting",
    "/operations/drops",
    "/operations/trace/x",
    "/console",
    "/",
  ])("%s is refused, also on loopback", async (path) => {
    await seeFile();
    for (const token of [null, "a guess of somebody", ""]) {
      const refused = await ask(path, token);
      expect(refused.status).toBe(401);
      expect(refused.headers.get("www-authenticate")).toBe("Bearer");
      expect(await refused.text()).not.toContain("meters.csv");
    }
  });

  it("health contains only its status, and with them the reasons", async () => {
    health = [{ part: "drop in", ready: false, reason: "no route to 10.1.2.3" }];
    const ready = await ask("/health/ready", null);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toEqual({ status: "not ready" });
    expect(await (await ask("/health/live", null)).json()).toEqual({ status: "live" });
    for (const token of [SECRET, READ_TOKEN])
      expect(await (await ask("/health/ready", token)).json()).toMatchObject({ parts: health });
    expect(await (await ask("/health/ready", METRICS_TOKEN)).json()).toEqual({ status: "not ready" });
  });

  it("readiness is checked at intervals, however often a stranger requests it", async () => {
    const asked = await Promise.all(Array.from({ length: 20 }, () => ask("/health/ready", null)));
    for (const { status } of asked) expect(status).toBe(200);
    expect(looks).toBe(1);
  });

  it("no command is accepted", async () => {
    const order = { method: "POST", body: JSON.stringify({ order: "pause" }) };
    expect((await ask("/operations/orders", null, order)).status).toBe(401);
  });
});

describe("a token", () => {
  it("permits its rights, and no command", async () => {
    const statusesOf = async (token: string) => {
      const order = { method: "POST", body: "{}", headers: { authorization: `Bearer ${token}` } };
      return {
        metrics: (await ask("/metrics", token)).status,
        runs: (await ask("/operations/runs", token)).status,
        command: (await ask("/operations/orders", token, order)).status,
      };
    };
    expect(await statusesOf(METRICS_TOKEN)).toEqual({ metrics: 200, runs: 403, command: 403 });
    expect(await statusesOf(READ_TOKEN)).toEqual({ metrics: 403, runs: 200, command: 403 });
    expect(await statusesOf(SECRET)).toEqual({ metrics: 200, runs: 200, command: 200 });
  });
});

describe("webhooks with a separate listener", () => {
  it("are accepted only there, where nothing else is served", async () => {
    const parts = {
      ...{ ledger, log: silentLog, metrics: metrics.registry, drops: () => [] },
      health: async () => [],
      waiting: async () => ({ files: [], total: 0, next: null }),
      receiveOutcome: async () => answer,
    };
    const webhook = { listen: "127.0.0.1:0" };
    const apart = await startOperations({ listen: "127.0.0.1:0", webhook }, parts);
    try {
      expect(apart.webhookUrl).not.toBe(apart.url);
      const post = (url: string) => fetch(`${url}/webhooks/outcome`, { method: "POST", body: "{}" });
      expect((await post(apart.webhookUrl)).status).toBe(200);
      expect((await post(apart.url)).status).toBe(401);
      for (const path of ["/health/live", "/metrics", "/operations/runs"])
        expect((await fetch(`${apart.webhookUrl}${path}`)).status).toBe(404);
    } finally {
      await apart.close();
    }
  });
});

describe("a port that is taken", () => {
  it("is named, with the next step", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    const port = typeof address === "object" ? address?.port : 0;
    const parts = {
      ledger,
      log: silentLog,
      metrics: metrics.registry,
      health: async () => [],
      waiting: async () => ({ files: [], total: 0, next: null }),
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
