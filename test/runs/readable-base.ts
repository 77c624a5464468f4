/**
 * The base interface of a service behind a port of its own, which a test can have unreachable, or refuse to
 * be read, while pushes go through.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class ReadableBase {
  readonly url: string;
  /** `away`: every call breaks; `refused`: every call is answered 403. */
  state: "there" | "away" | "refused" = "there";
  /** Calls for stored readings, in whatever state. */
  asked = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `to`: where the base interface is. */
  static async start(to: string): Promise<ReadableBase> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = new ReadableBase(server);
    server.on("request", async (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      base.asked += 1;
      if (base.state === "away") return void outgoing.destroy();
      if (base.state === "refused") return void outgoing.writeHead(403).end();
      const { connection: _, host: __, "content-length": ___, ...headers } = incoming.headers;
      const body = incoming.method === "GET" ? undefined : Buffer.concat(chunks);
      const answer = await fetch(`${to}${incoming.url}`, {
        method: incoming.method ?? "GET",
        headers: headers as Record<string, string>,
        ...(body === undefined ? {} : { body }),
      });
      const bytes = Buffer.from(await answer.arrayBuffer());
      const type = answer.headers.get("content-type") ?? "application/json";
      outgoing.writeHead(answer.status, { "content-type": type }).end(bytes);
    });
    return base;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}
