/** Stands before a hub and holds every push call until it is told to let them go. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface HeldPushes {
  /** Address of pushes. */
  readonly url: string;
  /** Calls that came in so far. */
  readonly calls: number;
  /** From now on calls go through, also those that are held, unless who made them has gone. */
  releaseAll(): void;
  close(): Promise<void>;
}

export async function holdPushes(hub: string): Promise<HeldPushes> {
  const open = Promise.withResolvers<void>();
  let calls = 0;
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    calls += 1;
    const body = await buffer(request);
    await open.promise;
    if (response.destroyed) return;
    const named = ["authorization", "content-type", "content-encoding"].flatMap((name) => {
      const value = request.headers[name];
      return typeof value === "string" ? [[name, value] as const] : [];
    });
    const answer = await fetch(`${hub}${request.url}`, {
      method: "POST",
      headers: Object.fromEntries(named),
      body,
    });
    const type = answer.headers.get("content-type") ?? "application/json";
    response.writeHead(answer.status, { "content-type": type }).end(await answer.text());
  };
  const server = createServer((request, response) => {
    // Who pushes may break off, and the hub may have gone.
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/push`,
    get calls() {
      return calls;
    },
    releaseAll: () => open.resolve(),
    async close() {
      open.resolve();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
