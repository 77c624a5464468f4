/**
 * Stands between gateways and the hub, in both directions: every call of a gateway goes through its own lane
 * (`/<lane>/push`, `/<lane>/base`, `/<lane>/token`), and the hub's webhooks come back by `/<lane>/hook`.
 * Processes may die and come back on other ports behind it. It records each push as it was sent.
 */
import { createHash } from "node:crypto";
import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

export interface Push {
  readonly operationId: string;
  readonly idempotencyKey: string;
  /** SHA-256 of the body. */
  readonly digest: string;
  readonly body: string;
  /** Null when no answer reached the gateway. */
  status: number | null;
  /** The answer that reached it was that of an earlier push with this key, as the hub said. */
  isRepeat: boolean;
}

/**
 * What a test does with a push instead of passing it on: an answer of its own, `reset` (the connection
 * breaks, nothing is passed on), `lost` (passed on, and then the connection breaks), `hung` (never answered,
 * nothing is passed on), `hung after` (passed on, never answered), or a wait before it is passed on.
 */
export type Interference =
  | {
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | "pass"
  | "reset"
  | "lost"
  | "hung"
  | "hung after"
  | Promise<unknown>;

/**
 * What becomes of a webhook: `late` ones come after those that were sent after them, `lost` ones are answered
 * and thrown away.
 */
export type WebhookFate = "passed" | "doubled" | "late" | "lost";

const LATE_MS = 300;

export class Lane {
  readonly name: string;
  readonly pushes: Push[] = [];
  /**
   * Operations that were sent with other bytes than before, or under another Idempotency-Key although no answer had
   * said that the former one came before.
   */
  readonly conflicts: string[] = [];
  /** Calls other than pushes, such as `POST /data`. */
  readonly calls: string[] = [];
  /** Address of the gateway's operations interface, where webhooks are passed on to; null while there is none. */
  gateway: string | null = null;
  webhooks = 0;
  /** Or a promise: it is passed on when that resolves. */
  fateOfWebhook: () => WebhookFate | Promise<unknown> = () => "passed";
  /** Whether the base interface answers at all; without it every call of it is answered 403. */
  mayRead = true;
  /** Whether every call of the base interface breaks. */
  baseIsAway = false;
  /** Whether the next call of the token endpoint fails. */
  failToken: () => boolean = () => false;
  interfere: (push: Push) => Interference = () => "pass";

  constructor(name: string) {
    this.name = name;
  }

  record(push: Push): void {
    const before = this.pushes.findLast((one) => one.operationId === push.operationId);
    this.pushes.push(push);
    if (before === undefined) return;
    const hasOtherKey = before.idempotencyKey !== push.idempotencyKey;
    if (before.digest !== push.digest || (hasOtherKey && !before.isRepeat)) this.conflicts.push(push.operationId);
  }
}

export class RecordingProxy {
  readonly url: string;
  /** Null while the hub is down. */
  hub: string | null = null;
  readonly #server: Server;
  readonly #lanes = new Map<string, Lane>();
  readonly #agent = new Agent({ keepAlive: false });
  /** Requests to the hub and to gateways that have not ended. */
  readonly #asked = new Set<ClientRequest>();
  #isClosed = false;

  constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
    server.on("request", (incoming, outgoing) => {
      this.#serve(incoming, outgoing).catch(() => outgoing.destroy());
    });
  }

  static async start(): Promise<RecordingProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new RecordingProxy(server, (server.address() as AddressInfo).port);
  }

  lane(name: string): Lane {
    const lane = this.#lanes.get(name) ?? new Lane(name);
    this.#lanes.set(name, lane);
    return lane;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#agent.destroy();
    for (const asked of this.#asked) asked.destroy();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const [, name = "", part = "", rest = ""] = /^\/([^/]+)\/([a-z]+)(.*)$/.exec(incoming.url ?? "") ?? [];
    const lane = this.lane(name);
    const body = await bodyOf(incoming);
    if (part === "hook") return await this.#passWebhook(lane, incoming, body, outgoing);
    if (part === "push") return await this.#passPush(lane, rest, incoming, body, outgoing);
    lane.calls.push(`${incoming.method} ${rest}`);
    if (part === "token" && lane.failToken()) {
      outgoing.writeHead(503).end();
      return;
    }
    if (part === "base" && lane.baseIsAway) {
      outgoing.destroy();
      return;
    }
    if (part === "base" && !lane.mayRead) {
      outgoing.writeHead(403).end();
      return;
    }
    const path = part === "token" ? "/connect/token" : rest;
    await this.#passOn(this.hub, path, incoming, body, outgoing);
  }

  async #passPush(
    lane: Lane,
    rest: string,
    incoming: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse,
  ): Promise<void> {
    const push: Push = {
      operationId: new URL(rest, "http://hub").searchParams.get("operationId") ?? "",
      idempotencyKey: String(incoming.headers["idempotency-key"] ?? ""),
      digest: createHash("sha256").update(body).digest("hex"),
      body: body.toString("utf8"),
      status: null,
      isRepeat: false,
    };
    lane.record(push);
    const interference = lane.interfere(push);
    if (interference instanceof Promise) await interference;
    if (typeof interference === "object" && "status" in interference) {
      push.status = interference.status;
      const headers = { "content-type": "application/problem+json", ...interference.headers };
      outgoing.writeHead(interference.status, headers).end(interference.body);
      return;
    }
    if (interference === "hung") return;
    if (interference === "reset") {
      outgoing.destroy();
      return;
    }
    const answer = await this.#ask(this.hub, `/push${rest}`, incoming, body);
    if (interference === "hung after") return;
    if (interference === "lost" || answer === null) {
      outgoing.destroy();
      return;
    }
    push.status = answer.status;
    push.isRepeat = answer.headers["idempotent-replayed"] === "true";
    outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  }

  async #passWebhook(lane: Lane, incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse) {
    lane.webhooks += 1;
    const fate = lane.fateOfWebhook();
    if (fate instanceof Promise) await fate;
    if (fate === "late") await new Promise((resolve) => setTimeout(resolve, LATE_MS));
    if (fate === "doubled") await this.#ask(lane.gateway, "/webhooks/outcome", incoming, body);
    if (fate === "lost") outgoing.writeHead(200).end();
    else await this.#passOn(lane.gateway, "/webhooks/outcome", incoming, body, outgoing);
  }

  /** What cannot be reached looks like a broken connection. */
  async #passOn(
    to: string | null,
    path: string,
    incoming: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse,
  ): Promise<void> {
    const answer = await this.#ask(to, path, incoming, body);
    if (answer === null) outgoing.destroy();
    else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  }

  #ask(to: string | null, path: string, incoming: IncomingMessage, body: Buffer): Promise<Answer | null> {
    // A late webhook may come after the end.
    if (to === null || this.#isClosed) return Promise.resolve(null);
    const { connection: _, "transfer-encoding": __, ...headers } = incoming.headers;
    return new Promise((resolve) => {
      const asked = request(
        new URL(path, to),
        {
          method: incoming.method ?? "GET",
          agent: this.#agent,
          headers: { ...headers, "content-length": String(body.length) },
        },
        (response) => {
          bodyOf(response).then(
            (bytes) => resolve(answerOf(response, bytes)),
            () => resolve(null), // It died in the middle of its answer.
          );
        },
      );
      this.#asked.add(asked);
      asked.on("close", () => this.#asked.delete(asked));
      asked.on("error", () => resolve(null)); // Nobody listens there now.
      asked.end(body);
    });
  }
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly body: Buffer;
}

function answerOf(response: IncomingMessage, body: Buffer): Answer {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined && !["connection", "transfer-encoding", "keep-alive"].includes(name)) headers[name] = value;
  return { status: response.statusCode ?? 502, headers, body };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
