/** Stands before a hub, and answers what it is told to instead of passing a call on. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** The status of an answer in place of the hub's; null passes the call on, such as `POST /variables`. */
export type Fault = (call: string, body: string) => number | null;

export class FaultyService {
  readonly url: string;
  /** Of each call, such as `POST /variables`. */
  readonly calls: string[] = [];
  /** Asked before a call is passed on. */
  before: Fault = () => null;
  /** Asked when the hub has done what it was asked for. */
  after: Fault = () => null;
  readonly #server: Server;

  private constructor(server: Server, hub: string) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", async (incoming, outgoing) => {
      const call = `${incoming.method} ${(incoming.url ?? "").replace(/\?.*/, "")}`;
      this.calls.push(call);
      const body = await bodyOf(incoming);
      const fault = this.before(call, body);
      const answer = fault === null ? await passOn(hub, incoming, body) : null;
      const instead = fault ?? this.after(call, body);
      if (answer === null || instead !== null) {
        outgoing.writeHead(instead ?? 500).end();
        return;
      }
      const { "content-encoding": _, "transfer-encoding": __, ...headers } = Object.fromEntries(answer.headers);
      outgoing.writeHead(answer.status, headers).end(await answer.text());
    });
  }

  static async before(hub: string): Promise<FaultyService> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new FaultyService(server, hub);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function passOn(hub: string, { url, method, headers: all }: IncomingMessage, body: string): Promise<Response> {
  const { host: _, connection: __, "content-length": ___, ...headers } = all;
  return fetch(`${hub}${url}`, {
    method: method ?? "GET",
    headers: headers as Record<string, string>,
    ...(body === "" ? {} : { body }),
  });
}
