import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { PassThrough, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, expect, it } from "vitest";
import { endConnectionsOnClose } from "#core/http-drain.ts";

const LONG_MS = 600_000;

/** Of clients, which keep their connections as long as servers let them. */
const agent = new Agent({ keepAlive: true });
afterEach(() => agent.destroy());

/** Each route answers when the test lets it. */
async function start({ silenceMs = LONG_MS, routes = ["/"] }: { silenceMs?: number; routes?: string[] } = {}) {
  const app = Fastify({ forceCloseConnections: "idle" });
  endConnectionsOnClose(app, silenceMs);
  const asked = new Map(routes.map((route) => [route, Promise.withResolvers<void>()]));
  const answers = new Map(routes.map((route) => [route, Promise.withResolvers<string | Readable>()]));
  for (const route of routes)
    app.all(route, async () => {
      asked.get(route)?.resolve();
      return answers.get(route)?.promise;
    });
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const answer = (route: string, body: string | Readable) => answers.get(route)?.resolve(body);
  return { app, port, asked: (route: string) => asked.get(route)?.promise, answer };
}

/** Resolves when the server has begun to close. */
async function beginClosing(app: FastifyInstance): Promise<{ readonly closed: Promise<void> }> {
  const closed = app.close();
  while (app.server.listening) await new Promise((resolve) => setImmediate(resolve));
  return { closed };
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

function get(port: number, path = "/"): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ port, path, agent }, resolve).on("error", reject).end();
  });
}

it("answers running requests when the server closes, and waits for no further request", async () => {
  const { app, port, asked, answer } = await start();
  const got = get(port);
  await asked("/");
  const { closed } = await beginClosing(app);
  answer("/", "in time");
  const response = await got;
  expect(response.headers.connection).toBe("close");
  expect(await text(response)).toBe("in time");
  await closed;
});

it("ends the connection of a response that had begun before, when it is complete", async () => {
  const { app, port, answer } = await start();
  const body = new PassThrough();
  answer("/", body);
  body.write("begun, ");
  const response = await get(port);
  const { closed } = await beginClosing(app);
  body.end("and ended");
  expect(response.headers.connection).toBe("keep-alive");
  expect(await text(response)).toBe("begun, and ended");
  await closed;
});

it("waits for no connection that stopped in the middle of a header", async () => {
  const { app, port } = await start();
  const heard = new Promise((resolve) =>
    app.server.once("connection", (socket: Socket) => socket.once("data", resolve)),
  );
  const silent = await connected(port);
  silent.write("GET / HTTP/1.1\r\nHo");
  await heard;
  const ended = once(silent, "close");
  await app.close();
  silent.resume();
  await ended;
});

it("answers all requests of one connection without waiting", async () => {
  const { app, port, asked, answer } = await start({ routes: ["/first", "/second"] });
  const socket = await connected(port);
  const ask = (route: string) => socket.write(`GET ${route} HTTP/1.1\r\nHost: x\r\n\r\n`);
  ask("/first");
  ask("/second");
  await Promise.all([asked("/first"), asked("/second")]);
  const { closed } = await beginClosing(app);
  answer("/second", "the second");
  answer("/first", "the first");
  expect(await text(socket)).toMatch(/the first[\s\S]*connection: close[\s\S]*the second$/i);
  await closed;
});

it("disconnects a client that stalls in its request", async () => {
  const { app, port } = await start({ silenceMs: 20 });
  const socket = await connected(port);
  socket.write(
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
  );
  await once(socket, "data");
  await app.close();
  socket.destroy();
});

it("keeps a client that only waits for the response", async () => {
  const { app, port, asked, answer } = await start({ silenceMs: 20 });
  const timeout = new Promise((resolve) =>
    app.server.once("request", (_request, response) => response.once("timeout", resolve)),
  );
  const got = get(port);
  await asked("/");
  const { closed } = await beginClosing(app);
  await timeout;
  answer("/", "late");
  expect(await text(await got)).toBe("late");
  await closed;
});
