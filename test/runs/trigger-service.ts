/**
 * A service whose file triggers a test sets, as the specification describes them; every other call is passed to a
 * hub.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class TriggerService {
  readonly url: string;
  triggers: readonly unknown[] = [];
  /** `away`: calls of triggers break; `empty`: they are answered 503 with an empty list. */
  state: "there" | "away" | "empty" = "there";
  /** Most items a page. */
  pageMax = 100;
  /** Whether pages can be chosen by number, which the specification does not name for this list. */
  knowsPages = true;
  /** Calls for a list. */
  asked = 0;
  /** Answers wait for it; they are of the time of their call. */
  held: Promise<void> | null = null;
  /** Value of `x-total-count`; the header is left out by default. */
  total: string | null = null;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `to`: the hub; without one, the service has triggers alone. */
  static async start(to?: string): Promise<TriggerService> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const service = new TriggerService(server);
    server.on("request", (incoming, outgoing) => {
      const { pathname, searchParams } = new URL(incoming.url ?? "/", service.url);
      if (pathname.startsWith("/fileTrigger")) service.#answer(pathname, searchParams, outgoing);
      else if (to !== undefined) void forward(to, incoming, outgoing);
      else outgoing.end(JSON.stringify({ access_token: "t", token_type: "Bearer", expires_in: 3600 }));
    });
    return service;
  }

  #answer(path: string, query: URLSearchParams, outgoing: ServerResponse): void {
    this.asked += 1;
    if (this.state === "away") return void outgoing.destroy();
    outgoing.setHeader("content-type", "application/json");
    if (this.state === "empty") return void outgoing.writeHead(503).end("[]");
    if (path.endsWith("/count")) return void outgoing.end(String(this.triggers.length));
    const perPage = Math.min(this.pageMax, Number(query.get("ItemsPerPage") ?? 20));
    const number = this.knowsPages ? Number(query.get("Paging.PageNumber") ?? 0) : 0;
    if (this.total !== null) outgoing.setHeader("x-total-count", this.total);
    const page = JSON.stringify(this.triggers.slice(number * perPage, (number + 1) * perPage));
    void Promise.resolve(this.held).then(() => outgoing.end(page));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

async function forward(to: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { connection: _, host: __, "content-length": ___, "transfer-encoding": ____, ...headers } = incoming.headers;
  const answer = await fetch(`${to}${incoming.url}`, {
    method: incoming.method ?? "GET",
    headers: headers as Record<string, string>,
    ...(incoming.method === "GET" ? {} : { body: Buffer.concat(chunks) }),
  });
  const type = answer.headers.get("content-type") ?? "application/json";
  outgoing.writeHead(answer.status, { "content-type": type }).end(Buffer.from(await answer.arrayBuffer()));
}

/** A trigger in the spelling of the specification, for the mapper `standard`. */
export function listed(id: number, ending: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    Id: id,
    FileType: "OpisenseStandard",
    IngestionType: "SendViaFtp",
    TriggerType: "Added",
    FileNamePatternMatches: [{ FilterType: "EndsWith", Value: ending }],
    FileTriggerCombination: "And",
    State: "Active",
    Token: null,
    Metadata: {},
    CreationDate: "2026-01-01T00:00:00",
    CreatedBy: "ann",
    ...more,
  };
}
