/** An HTTP listener that is there at once, and loads what answers when its first request comes. */
import { lookup } from "node:dns/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { limitConnections, serverLimits } from "../connection-limits.ts";
import { wordsOf } from "../errors.ts";
import type { HttpLimits } from "../http-options.ts";
import type { Logger } from "../log.ts";
import { explainListen, hostAndPort } from "../start-fault.ts";

/** Not imported: an import reads each export of the module, among them `WebSocket`, which loads Node's own undici. */
const { createServer } = process.getBuiltinModule("node:http");

export interface ListenerOptions {
  readonly http: HttpLimits;
  /** Key and certificate; plain HTTP when absent. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
  readonly log: Logger;
}

export interface Listener {
  /** Such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** Ends connections and closes the application. */
  close(): Promise<void>;
}

/** Makes the application of a server; it does not listen itself. */
export type LoadApplication = (server: Server) => Promise<FastifyInstance>;

/**
 * `setting` names the option of `address` in messages. Requests wait until `load` has ended, which is called once
 * unless it fails. Throws as `explainListen` does, and the error of a key or certificate that cannot be used.
 */
export async function openListener(
  { address, setting }: { readonly address: string; readonly setting: string },
  options: ListenerOptions,
  load: LoadApplication,
): Promise<Listener> {
  const servers: Server[] = [];
  const loader = new Loader(servers, load, options.log);
  const listen = async (host: string, port: number) => {
    const server = makeServer(options);
    servers.push(server);
    server.on("request", (request, response) => loader.answer(request, response));
    await explainListen(() => listening(server, host, port), address, setting);
    return server.address() as AddressInfo;
  };
  const { host, port } = hostAndPort(address);
  const [first = host, ...others] = host === "localhost" ? await addressesOf(host) : [host];
  const place = await listen(first, port);
  // A browser may take either address of this name; one that cannot be had is no fault.
  for (const other of others) await listen(other, place.port).catch(() => servers.pop());
  const url = urlOf(place, options.tls !== undefined);
  options.log.info(`Server listening at ${url}`);
  return { url, close: () => loader.close() };
}

function makeServer({ http, tls, log }: ListenerOptions): Server {
  const limits = serverLimits(http);
  const server = tls === undefined ? createServer(limits) : createTlsServer({ ...limits, ...tls });
  limitConnections({ server }, http, log);
  return server;
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function addressesOf(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}

/** Of a server that listens everywhere, the address by which this machine reaches it. */
function urlOf({ address, family, port }: AddressInfo, hasTls: boolean): string {
  const host = family === "IPv6" ? `[${address}]` : address.replace(/^0\.0\.0\.0$/, "127.0.0.1");
  return `http${hasTls ? "s" : ""}://${host}:${port}`;
}

/** Loads the application for the first request, and hands all of them over. */
class Loader {
  readonly #servers: readonly Server[];
  readonly #load: LoadApplication;
  readonly #log: Logger;
  /** Null before the first request. */
  #app: Promise<FastifyInstance> | null = null;

  constructor(servers: readonly Server[], load: LoadApplication, log: Logger) {
    this.#servers = servers;
    this.#load = load;
    this.#log = log;
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    this.#loaded().then(
      (app) => app.routing(request, response),
      (thrown: unknown) => {
        this.#log.error({ reason: wordsOf(thrown) }, "the application of a listener cannot be loaded");
        // The next request tries again.
        this.#app = null;
        response.writeHead(503).end();
      },
    );
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const server of this.#servers) server.closeAllConnections();
    await Promise.all(closed);
    const app = await this.#app?.catch(() => null);
    await app?.close();
  }

  #loaded(): Promise<FastifyInstance> {
    const [server] = this.#servers;
    if (server === undefined) throw new Error("a request without a server");
    this.#app ??= this.#load(server).then(async (app) => {
      await app.ready();
      return app;
    });
    return this.#app;
  }
}
