/**
 * A service over real HTTP that behaves as its script says, call by call, and correctly when the script is at its end.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { UnsecuredJWT } from "jose";
import type { ServiceOptions } from "#gateway/delivery/options.ts";
import { dataQuery, type PushElement, type Source, type Variable } from "#wire/index.ts";

export interface SeenCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/**
 * `reset`: nothing accepted; `reset-after-accepting`: accepted, no response; `hang`: never responds; a function decides
 * by the body.
 */
export type Step =
  | Reply
  | "accept"
  | "reset"
  | "reset-after-accepting"
  | "hang"
  | ((body: readonly PushElement[], call: SeenCall) => Step);

export interface StoredReading {
  readonly element: PushElement;
  readonly date: string;
  readonly value: number;
  readonly operationId: string;
}

export class ScriptedService {
  readonly calls: SeenCall[] = [];
  readonly pushScript: Step[] = [];
  /** The step after the end of the script. */
  pushDefault: Step = "accept";
  readonly tokenScript: Reply[] = [];
  expiresInSec = 300;
  /** Whether a push that is repeated under one Idempotency-Key is stored once. */
  idempotency = true;
  /** Claims of the tokens; null makes them opaque. */
  claims: Record<string, unknown> | null = { account: "7" };
  scope: string | undefined = "datahub-api push-data";
  tokensIssued = 0;
  readonly validTokens = new Set<string>();
  sources: Source[] = [];
  variables: Variable[] = [];
  /** Rows of /data, whatever the period; filtered by variable. */
  rows: { variableId: number; date: string; rawValue: number; version?: string }[] = [];
  /** Limit on the rows of a page of /data. */
  rowsPerPage = 1000;
  /** State of operations, by their ids; others are not known. */
  readonly operations = new Map<string, string>();
  /** Overrides the answer of any read. */
  readReply: Reply | null = null;
  /** Accepted readings. */
  readonly stored: StoredReading[] = [];
  readonly #keys = new Map<string, string>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((thrown: unknown) => response.destroy(thrown as Error));
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get options(): ServiceOptions {
    return {
      name: "main",
      base: `${this.url}/base`,
      push: `${this.url}/push/`,
      token: `${this.url}/token`,
      apiVersion: "1.7",
      account: "7",
      credentials: { clientId: "c", clientSecret: "cs", username: "u", password: "p" },
      scopes: ["datahub-api", "push-data"],
      auth: "bearer",
      idempotency: this.idempotency,
      webhook: {},
      ingestion: { future: 86_400_000 },
    };
  }

  get pushes(): SeenCall[] {
    return this.calls.filter((call) => call.path === "/push/api/data");
  }

  callsTo(path: string): SeenCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const call: SeenCall = {
      method: request.method ?? "",
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks),
    };
    this.calls.push(call);
    if (call.path === "/token") this.#token(response);
    else if (call.path === "/push/api/data") this.#push(call, response);
    else this.#answerRead(call, response);
  }

  #answerRead(call: SeenCall, response: ServerResponse): void {
    const authorised = this.validTokens.has((call.headers.authorization ?? "").replace("Bearer ", ""));
    reply(response, this.readReply ?? (authorised ? this.#read(call) : { status: 401 }));
  }

  #token(response: ServerResponse): void {
    const scripted = this.tokenScript.shift();
    if (scripted !== undefined) {
      reply(response, scripted);
      return;
    }
    this.tokensIssued += 1;
    const token =
      this.claims === null
        ? `opaque-${this.tokensIssued}`
        : new UnsecuredJWT({ ...this.claims, jti: String(this.tokensIssued) }).encode();
    this.validTokens.add(token);
    const body = { access_token: token, expires_in: this.expiresInSec, scope: this.scope };
    reply(response, json(200, body));
  }

  #push(call: SeenCall, response: ServerResponse): void {
    const authorization = call.headers.authorization ?? "";
    if (authorization.startsWith("Bearer ") && !this.validTokens.has(authorization.slice(7)))
      this.pushScript.unshift({ status: 401 });
    const elements = JSON.parse(call.body.toString()) as PushElement[];
    let step = this.pushScript.shift() ?? this.pushDefault;
    while (typeof step === "function") step = step(elements, call);
    if (step === "hang") return;
    if (step === "accept" || step === "reset-after-accepting") this.#store(call, elements);
    if (step === "reset" || step === "reset-after-accepting") {
      response.socket?.resetAndDestroy();
      return;
    }
    const operationId = call.query.get("operationId") ?? "";
    reply(response, step === "accept" ? json(200, { operationId, status: "accepted" }) : step);
  }

  #store(call: SeenCall, elements: readonly PushElement[]): void {
    const key = String(call.headers["idempotency-key"]);
    const digest = createHash("sha256").update(call.body).digest("hex");
    const before = this.#keys.get(key);
    if (before !== undefined && before !== digest) throw new Error(`${key} came with other bytes`);
    if (before !== undefined && this.idempotency) return;
    this.#keys.set(key, digest);
    const operationId = call.query.get("operationId") ?? "";
    for (const element of elements)
      for (const { date, value } of element.data) this.stored.push({ element, date, value, operationId });
  }

  #read(call: SeenCall): Reply {
    const page = Number(call.query.get("Paging.PageNumber") ?? 0);
    const items = Number(call.query.get("Paging.ItemsPerPage") ?? 100);
    const some = <Item>(all: readonly Item[]) => json(200, all.slice(page * items, (page + 1) * items));
    const ids = (name: string) => call.query.getAll(name).map(Number);
    if (call.path === "/base/sites") return some([]);
    if (call.path === "/base/sources") {
      const wanted = call.query.getAll("SerialNumbers");
      return some(this.sources.filter(({ serialNumber }) => wanted.includes(serialNumber ?? "")));
    }
    if (call.path === "/base/variables") {
      if (!call.query.has("Ids") && !call.query.has("SourceIds")) return some(this.variables);
      return some(
        this.variables.filter(({ id, sourceId }) => ids("Ids").includes(id) || ids("SourceIds").includes(sourceId)),
      );
    }
    const operationId = /^\/base\/operations\/(.+)$/.exec(call.path)?.[1] ?? "";
    const status = this.operations.get(operationId);
    if (status !== undefined) return json(200, { operationId, status });
    if (call.path === "/base/data") return this.#data(JSON.parse(call.body.toString()));
    return { status: 404 };
  }

  #data(query: Record<string, unknown>): Reply {
    const { VariableIds: ids, VersionTag: version, From: from, To: to } = dataQuery.parse(query);
    const page = Number(query["Paging.PageNumber"]);
    const items = Math.min(this.rowsPerPage, Number(query["Paging.ItemsPerPage"]));
    const rows = this.rows.filter(
      (row) =>
        ids?.includes(row.variableId) === true &&
        (version === undefined || row.version === version) &&
        Date.parse(row.date) >= Date.parse(`${from}Z`) &&
        Date.parse(row.date) <= Date.parse(`${to}Z`),
    );
    return json(200, rows.slice(page * items, (page + 1) * items));
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

function reply(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers).end(body);
}
