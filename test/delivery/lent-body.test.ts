import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { LentBody } from "#gateway/delivery/slices.ts";
import { HttpClient } from "#wire/client/http.ts";
import { testCertificate, testKey } from "../drops/certificate.ts";

const timeouts = { connect: 2_000, headers: 20_000, body: 20_000, total: 20_000 };
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function portOf(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function clientOf(): HttpClient {
  const client = new HttpClient({ connections: 1, timeouts, ca: testCertificate });
  closers.push(() => client.close());
  return client;
}

/** A body of this size, and how often its buffer was given back. */
function lend(bytes: number) {
  const seen = { returned: 0, body: null as unknown as LentBody, bytes: Buffer.alloc(bytes, "a") };
  seen.body = new LentBody(seen.bytes, () => {
    seen.returned += 1;
  });
  return seen;
}

function post(client: HttpClient, origin: string, { body, bytes }: ReturnType<typeof lend>) {
  return client.call({
    method: "POST",
    origin,
    path: "/push",
    headers: { "content-length": String(bytes.length) },
    body: () => body.open(),
    answerMax: 1_000,
    signal: new AbortController().signal,
  });
}

describe("a body in a buffer that is used again", () => {
  it.each(["http", "https"])(
    "is given back when the service has answered over %s, and was sent whole",
    async (kind) => {
      const received: Buffer[] = [];
      const answer = async (request: IncomingMessage, response: ServerResponse) => {
        received.push(await buffer(request));
        response.end("ok");
      };
      const server =
        kind === "http" ? createServer(answer) : createSecureServer({ key: testKey, cert: testCertificate }, answer);
      const origin = `${kind}://localhost:${await portOf(server)}`;
      const client = clientOf();
      for (const size of [64 * 1024, 300_000, 512 * 1024]) {
        const lent = lend(size);
        expect(await post(client, origin, lent)).toMatchObject({ status: 200, text: "ok" });
        expect(lent.returned).toBe(0);
        lent.body.release();
        lent.body.release();
        expect(lent.returned).toBe(1);
        expect(received.at(-1)?.equals(lent.bytes)).toBe(true);
      }
    },
  );

  it("is kept when a service answers before the socket has taken it", async () => {
    const server = createSocketServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("readable", () => {
        // Reads no more than this, so that most of the body stays in the socket of the client.
        socket.read(1_000);
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      });
    });
    const lent = lend(64 * 1024 * 1024);
    const answer = await post(clientOf(), `http://127.0.0.1:${await portOf(server)}`, lent);
    lent.body.release();
    expect(answer).toMatchObject({ status: 200, text: "ok" });
    expect(lent.returned).toBe(0);
  });

  it("is sent again by a second call, and by none after it was given back", async () => {
    const lent = lend(100_000);
    for (const calls of [1, 2]) {
      const seen: Buffer[] = [];
      for await (const piece of lent.body.open()) seen.push(piece);
      expect(seen, `call ${calls}`).toEqual([lent.bytes]);
    }
    const late = lent.body.open();
    lent.body.release();
    expect(lent.returned).toBe(1);
    await expect(late.next()).rejects.toThrow("holds another one");
  });

  it("is kept while any of its calls has not taken it, and when a call breaks off", async () => {
    const waiting = lend(100_000);
    await waiting.body.open().next();
    for await (const _ of waiting.body.open());
    waiting.body.release();
    expect(waiting.returned).toBe(0);

    const broken = lend(100_000);
    for await (const _ of broken.body.open()) break;
    broken.body.release();
    expect(broken.returned).toBe(0);
  });
});
