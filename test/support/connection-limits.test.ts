/** Callers who stall, against the three servers; real sockets with short limits. */
import { connect, type Socket } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { limitConnections, serverLimits } from "#core/connection-limits.ts";
import { httpOptions } from "#core/http-options.ts";
import { silentLog } from "#core/log.ts";
import { basic, IntakeRig } from "../drops/intake-rig.ts";
import { startTestHub } from "../hub/fixture.ts";

const QUICK = { headers: "400ms", idle: "400ms", keepAlive: "400ms", connections: 5 };
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** What the server wrote until it closed the connection. */
function opened(url: string, text = ""): { socket: Socket; closed: Promise<string> } {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  let told = "";
  socket.on("data", (bytes: Buffer) => {
    told += bytes.toString();
  });
  const closed = new Promise<string>((resolve) => {
    socket.on("error", () => undefined); // Cut off, which is a way of closing.
    socket.on("close", () => resolve(told));
  });
  if (text !== "") socket.write(text);
  return { socket, closed };
}

const headOf = (path: string, length: number, more = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`;

interface Server {
  readonly url: string;
  /** The head of a request whose body the server waits for. */
  readonly head: string;
  close(): Promise<void>;
}

const servers: readonly [string, () => Promise<Server>][] = [
  [
    "the hub",
    async () => {
      const hub = await startTestHub({ http: QUICK });
      const head = headOf("/push/api/data", 1_000, `Authorization: ${basic("pusher")}\r\n`);
      return { url: hub.url(), head, close: () => hub.close() };
    },
  ],
  [
    "the intake",
    async () => {
      const rig = await IntakeRig.start(undefined, {}, { http: QUICK });
      const head = headOf("/api/data", 1_000, `Authorization: ${basic("device")}\r\n`);
      return { url: rig.url, head, close: () => rig.close() };
    },
  ],
  [
    "the operator's interface",
    async () => {
      const operations = { listen: "127.0.0.1:0", http: QUICK };
      const rig = await IntakeRig.start(undefined, { operations });
      const head = headOf("/webhooks/outcome", 1_000);
      return { url: rig.gateway.operationsUrl, head, close: () => rig.close() };
    },
  ],
];

describe.each(servers)("%s", (_, start) => {
  let server: Server;
  beforeEach(async () => {
    server = await start();
  });
  afterEach(() => server.close());

  test("ends connections without a request, and requests whose headers or body stand still", async () => {
    const silent = opened(server.url);
    const halfHeaders = opened(server.url, "GET / HTTP/1.1\r\nHost: x\r\n");
    const halfBody = opened(server.url, `${server.head}[`);
    await silent.closed;
    await halfHeaders.closed;
    expect(await halfBody.closed).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("accepts no more connections than configured, and others when they are free", async () => {
    const held = Array.from({ length: 5 }, () => opened(server.url, `${server.head}[`));
    await Promise.all(held.map(({ socket }) => new Promise((resolve) => socket.once("connect", resolve))));
    const sixth = opened(server.url, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(await sixth.closed).toBe("");
    await Promise.all(held.map(({ closed }) => closed));
    const free = opened(server.url, "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect(await free.closed).toMatch(/^HTTP\/1\.1 40[14] /);
  });
});

describe("a body", () => {
  let app: FastifyInstance;
  let url: string;
  const begin = async (more: object = {}) => {
    const limits = httpOptions.parse({ ...QUICK, ...more });
    app = Fastify({ http: serverLimits(limits) }) as unknown as FastifyInstance;
    limitConnections(app, limits, silentLog);
    app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    app.post("/", (request) => ({ received: (request.body as Buffer).length }));
    url = await app.listen({ host: "127.0.0.1", port: 0 });
  };
  afterEach(() => app.close());
  const head = (length: number) => headOf("/", length, "Connection: close\r\n").replace("application/json", "a/b");

  test("that comes slowly and steadily is accepted, however long it takes as a whole", async () => {
    await begin({ idle: "2s" });
    const { socket, closed } = opened(url, head(12_000));
    // Longer than a body may stand still.
    for (let part = 0; part < 12; part += 1) {
      socket.write("x".repeat(1_000));
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    expect(await closed).toContain('{"received":12000}');
  });

  test("that drips more slowly than the least pace is ended", async () => {
    await begin({ bytesPerSecond: 10_000 });
    const { socket, closed } = opened(url, head(12_000));
    const dripping = setInterval(() => socket.write("x"), 50);
    expect(await closed).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(dripping);
  });
});

test("a client that reads nothing of a large response is disconnected", async () => {
  const limits = httpOptions.parse(QUICK);
  const app = Fastify({ http: serverLimits(limits) }) as unknown as FastifyInstance;
  limitConnections(app, limits, silentLog);
  app.get("/", () => Buffer.alloc(64_000_000));
  try {
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const { socket, closed } = opened(url);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const count = () => new Promise<number>((resolve) => app.server.getConnections((_, open) => resolve(open)));
    await expect.poll(count).toBe(1);
    await expect.poll(count, { timeout: 60_000 }).toBe(0);
    socket.resume();
    await closed;
  } finally {
    await app.close();
  }
});
