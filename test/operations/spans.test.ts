import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { traceIdOf } from "#core/trace-context.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: Readonly<Record<string, string | number>>;
  }[];
}

let rig: GatewayRig;
let gateway: Gateway | null;
let servers: Server[];
let lines: string[];

beforeEach(async () => {
  rig = await GatewayRig.start();
  gateway = null;
  servers = [];
  lines = [];
});
afterEach(async () => {
  await gateway?.stop();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await rig.close();
});

async function listening(onRequest: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(onRequest);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A gateway whose log goes to `lines`. */
async function open(sections: Readonly<Record<string, unknown>>): Promise<Gateway> {
  rig.configure(sections);
  const config = loadGatewayConfig(rig.config);
  const destination = { write: (line: string) => void lines.push(line) };
  gateway = await startGateway(config, { log: createLog(config.log.level, destination) });
  return gateway;
}

async function runOf(path: string) {
  const runs = (await gateway?.ledger.trace(path))?.[0]?.runs ?? [];
  return runs[0] ?? null;
}

const confirmed = (path: string) =>
  until(`${path} is confirmed`, async () => (await runOf(path))?.run.state === "confirmed");

function attribute(span: Span, key: string): unknown {
  const value = span.attributes.find((one) => one.key === `headgate.${key}`)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}

describe("traces", () => {
  it("reach a receiver of OTLP as one trace per run, with a span for each step and each push", async () => {
    const spans: Span[] = [];
    const endpoint = await listening(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      expect(request.url).toBe("/v1/traces");
      expect(request.headers["x-key"]).toBe("of the receiver");
      const body = JSON.parse(Buffer.concat(chunks).toString()) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      for (const { scopeSpans } of body.resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 7));
    const tracing = { endpoint, headers: { "x-key": "of the receiver" } };
    await open({ log: { level: "silent" }, operations: { listen: "127.0.0.1:0", tracing } });
    await confirmed("a.csv");
    const found = await runOf("a.csv");
    await gateway?.stop();
    gateway = null;
    const runId = found?.run.id ?? "";
    expect([...new Set(spans.map(({ name }) => name))].sort()).toEqual([
      "confirm",
      "deliver",
      "fetch",
      "finish",
      "map",
      "push",
      "run",
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(runId)]));
    const root = spans.find(({ name }) => name === "run");
    expect(root?.parentSpanId ?? "").toBe("");
    expect(spans.filter(({ name }) => name === "push" || name === "run")).toHaveLength(2);
    for (const span of spans.filter(({ name }) => name !== "run")) {
      expect(span.parentSpanId).toBe(root?.spanId);
      expect(attribute(span, "run")).toBe(runId);
      expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
    }
    const push = spans.find(({ name }) => name === "push");
    expect(push && attribute(push, "operationId")).toBe(found?.batches[0]?.operationId);
    expect(push && Number(attribute(push, "points"))).toBe(1);
    const map = spans.find(({ name }) => name === "map");
    expect(map && ["drop", "trigger", "mapper"].map((key) => attribute(map, key))).toEqual([
      "in",
      "standard",
      "standard",
    ]);
  });

  it("without a receiver disturb nothing, and are logged once", async () => {
    let refusals = 0;
    const endpoint = await listening((request, response) => {
      request.resume();
      refusals += 1;
      response.writeHead(400).end("no");
    });
    const variable = await rig.variable("a");
    await open({ log: { level: "warn" }, operations: { listen: "127.0.0.1:0", tracing: { endpoint } } });
    rig.put("in/a.csv", oneReading(variable, 7));
    await confirmed("a.csv");
    await until("an export was refused", async () => refusals > 0);
    rig.put("in/b.csv", oneReading(variable, 8, "2026-03-02T00:00:00Z"));
    await confirmed("b.csv");
    await gateway?.stop();
    gateway = null;
    expect(refusals).toBeGreaterThan(1);
    expect(lines.filter((line) => line.includes("traces cannot be exported"))).toHaveLength(1);
  });

  it("go to the endpoint that the standard variable names", () => {
    rig.configure({});
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:4318";
    try {
      expect(loadGatewayConfig(rig.config).operations.tracing.endpoint).toBe("http://127.0.0.1:4318");
    } finally {
      delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
    }
    expect(loadGatewayConfig(rig.config).operations.tracing.endpoint).toBeUndefined();
  });

  it("are continued by each push: a repeated one is in the same trace, as another span", async () => {
    const headers: string[] = [];
    const push = await listening((request, response) => {
      request.resume();
      headers.push(String(request.headers["traceparent"]));
      response.writeHead(headers.length === 1 ? 503 : 200).end();
    });
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 7));
    await open({ log: { level: "silent" }, services: [{ ...rig.service("hub"), push }] });
    await until("it was pushed again", async () => headers.length === 2);
    const traceId = traceIdOf((await runOf("a.csv"))?.run.id ?? "");
    const parsed = headers.map((header) => /^00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]$/.exec(header));
    expect(parsed.map((match) => match?.[1])).toEqual([traceId, traceId]);
    expect(parsed[0]?.[2]).not.toBe(parsed[1]?.[2]);
  });
});

describe("a push", () => {
  it("names the page of the console that finds the rows of its readings, where its address is known", async () => {
    const links: unknown[] = [];
    const push = await listening((request, response) => {
      request.resume();
      links.push(request.headers["x-trace-link"]);
      response.writeHead(200).end();
    });
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 7));
    const operations = { console: { publicUrl: "https://gateway.example.com/one/" } };
    await open({ log: { level: "silent" }, services: [{ ...rig.service("hub"), push }], operations });
    await until("it was pushed", async () => links.length > 0);
    expect(links).toEqual(["https://gateway.example.com/one/console/readings"]);
  });
});

describe("the log", () => {
  it("names run and operation, and contains no secret at any level, whatever the fault", async () => {
    const PLANTED = "planted-in-the-configuration";
    const echo = await listening((request, response) => {
      // As a gateway of the service might, it repeats what it was sent.
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const words = `no: ${decodeURIComponent(Buffer.concat(chunks).toString())} ${JSON.stringify(request.headers)}`;
        response.writeHead(request.url?.includes("token") ? 400 : 503, {
          "content-type": "application/json",
        });
        response.end(JSON.stringify({ error: "invalid_grant", error_description: words }));
      });
    });
    const service = rig.service("broken", echo);
    const credentials = {
      ...service.credentials,
      clientSecret: `${PLANTED}-1"with-a-quote`,
      password: `${PLANTED}-2`,
    };
    const variable = await rig.variable("a");
    rig.put("in/a.csv", oneReading(variable, 7));
    rig.put("other/b.csv", oneReading(variable, 7));
    rig.put("in/bad.csv", "variable_id,date,value\nx\n");
    await open({
      log: { level: "trace" },
      services: [rig.service("hub"), { ...service, credentials }],
      drops: [
        drop("in"),
        drop("other"),
        {
          name: "intake",
          kind: "http",
          listen: "127.0.0.1:0",
          users: [{ username: "u", password: `${PLANTED}-3`, service: "hub" }],
        },
      ],
      triggers: [
        trigger("standard", { service: "hub", drops: ["in"] }),
        trigger("other", { service: "broken", drops: ["other"] }),
      ],
      operations: {
        listen: "127.0.0.1:0",
        webhook: { publicUrl: "http://127.0.0.1:9", secret: `${PLANTED}-4-of-16-letters` },
      },
    });
    await until("the credentials are refused", async () => lines.some((line) => line.includes("HG-PUSH-003")));
    await fetch(`${gateway?.intakes["intake"]}/connect/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "password",
        username: "u",
        password: `${PLANTED}-3`,
        client_id: "c",
      }),
    });
    await until("a batch is accepted", async () => lines.some((line) => line.includes("batch accepted")));
    const written = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.filter((line) => line.includes(PLANTED))).toEqual([]);
    expect(lines.some((line) => line.includes("[redacted]"))).toBe(true);
    for (const line of written.filter(({ operationId }) => operationId !== undefined))
      expect(String(line["operationId"])).toContain(String(line["run"]));
    expect(written.some(({ operationId }) => operationId !== undefined)).toBe(true);
  });
});
