/** A real hub on a free port with two accounts, and the calls that tests make. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { afterAll } from "vitest";
import { createLog } from "#core/log.ts";
import type { HubRoute } from "#hub/http/route.ts";
import { type HubInside, type HubParts, type RunningHub, startHub } from "#hub/hub.ts";
import { type HubOptions, hubOptions } from "#hub/options.ts";
import type { NewOperation } from "#hub/store/operations.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";

export const SECRET = "a-webhook-secret";

let database: TestDatabase | null = null;
afterAll(() => database?.drop());

/**
 * From now on the hubs of this test file keep their data in PostgreSQL (`on-postgres.slow.test.ts`); otherwise in
 * SQLite.
 */
export async function usePostgres(): Promise<TestDatabase> {
  database ??= await openTestDatabase();
  return database;
}

/** Each directory is a store of its own. */
export function storeAt(directory: string): object {
  if (database === null) return { kind: "sqlite", path: join(directory, "hub.sqlite") };
  return { kind: "postgres", url: database.url, schema: schemaOf(directory), pool: 4 };
}

/** What the writer of points begins from now on takes `ms` at least, until which the result waits. */
export async function holdWriter(directory: string, ms: number): Promise<{ released: Promise<void> }> {
  const later = (release: () => unknown) => ({
    released: new Promise<void>((resolve, reject) => {
      setTimeout(() => void Promise.resolve(release()).then(() => resolve(), reject), ms);
    }),
  });
  if (database === null) {
    const other = new DatabaseSync(join(directory, "hub.sqlite"));
    other.exec("BEGIN IMMEDIATE");
    return later(() => other.close());
  }
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${schemaOf(directory)}.variable IN ACCESS EXCLUSIVE MODE`);
  return later(() => client.end());
}

/** Values that the store refuses to take from now on, as though it had a fault; `mended` ends that. */
export async function breakStore(directory: string, value: number): Promise<{ mended(): Promise<void> }> {
  const run = async (sqlite: string, postgres: string) => {
    if (database !== null) return void (await database.query(postgres));
    const other = new DatabaseSync(join(directory, "hub.sqlite"), { timeout: 5_000 });
    other.exec(sqlite);
    other.close();
  };
  const table = `${schemaOf(directory)}.point`;
  await run(
    `CREATE TRIGGER fault BEFORE INSERT ON point WHEN NEW.value = ${value} BEGIN SELECT RAISE(ABORT, ` +
      "'on purpose'); END",
    `ALTER TABLE ${table} ADD CONSTRAINT fault CHECK (value <> ${value}) NOT VALID`,
  );
  return {
    mended: () => run("DROP TRIGGER fault", `ALTER TABLE ${table} DROP CONSTRAINT fault`),
  };
}

function schemaOf(directory: string): string {
  return basename(directory)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "_");
}

async function storedIdentities(directory: string): Promise<string> {
  if (database === null) {
    const files = ["hub.sqlite", "hub.sqlite-wal"].map((name) => readFile(join(directory, name), "latin1"));
    return (await Promise.all(files)).join("");
  }
  const tables = ["client", "hub_user"].map((table) => `${schemaOf(directory)}.${table}`);
  const { query } = database;
  return JSON.stringify(await Promise.all(tables.map((table) => query(`SELECT * FROM ${table}`))));
}

export function rawOptions(directory: string, options: object = {}): object {
  const { transfer, ...more } = options as { readonly transfer?: object };
  return {
    ...(transfer === undefined ? {} : { transfer: { path: join(directory, "transfer"), ...transfer } }),
    listen: "127.0.0.1:0",
    store: storeAt(directory),
    files: { path: join(directory, "files") },
    mail: { outbox: join(directory, "outbox") },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second" },
    ],
    clients: [
      { id: "gateway", secret: "gateway-secret" },
      { id: "reader", secret: "reader-secret", scopes: ["datahub-api"] },
    ],
    users: [
      { username: "manager", password: "manager-password", accounts: [1, 2], roles: ["Manager"] },
      { username: "second", password: "second-password", accounts: [2], roles: ["Manager"] },
      { username: "pusher", password: "pusher-password", accounts: [1], roles: ["Datapusher"] },
      { username: "plain", password: "plain-password", accounts: [1], roles: ["User"] },
      { username: "admin", password: "admin-password", accounts: [1], roles: ["Admin"] },
    ],
    webhook: { secret: SECRET, backoff: "20ms", timeout: "2s", hosts: ["127.0.0.1"] },
    ...more,
  };
}

export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "headgate-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

export interface TestHub extends HubCalls {
  readonly options: HubOptions;
  readonly routes: readonly HubRoute[];
  readonly directory: string;
  /** Of the hub that runs now. */
  inside(): HubInside;
  transfer(): RunningHub["transfer"];
  /** Everything that the store keeps of clients and users. */
  stored(): Promise<string>;
  restart(): Promise<void>;
  /** Leaves the store where it is, for another hub. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** `isQuick`: passwords are hashed at little cost; otherwise as in the product. */
export async function startTestHub(
  more: object = {},
  isQuick = true,
  own: Partial<Pick<HubParts, "mappersOf" | "log">> = {},
): Promise<TestHub> {
  const { path: directory, remove } = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory, more));
  const parts = { log: createLog("silent"), ...own, ...(isQuick ? { hashCost } : {}) };
  let stopped = false;
  let running: RunningHub = await startHub(options, parts);
  return {
    ...callsOf(() => running.url),
    options,
    routes: running.routes,
    directory,
    inside: () => running.inside,
    transfer: () => running.transfer,
    stored: () => storedIdentities(directory),
    async restart() {
      await running.close();
      running = await startHub(options, parts);
    },
    async stop() {
      if (!stopped) await running.close();
      stopped = true;
    },
    async close() {
      if (!stopped) await running.close();
      await remove();
    },
  };
}

export type HubCalls = ReturnType<typeof callsOf>;
export type Query = Record<string, string | number | boolean | readonly (string | number)[]>;

export function callsOf(url: () => string) {
  const tokens = new Map<string, string>();
  const form = (fields: Record<string, string>) =>
    fetch(`${url()}/connect/token`, { method: "POST", body: new URLSearchParams(fields) });
  const token = async (username = "manager", account = 1, scope = "datahub-api push-data"): Promise<string> => {
    const key = `${username} ${account} ${scope}`;
    const known = tokens.get(key);
    if (known !== undefined) return known;
    const response = await form({
      ...GRANT,
      username,
      password: `${username}-password`,
      scope,
      account: `${account}`,
    });
    const body = (await response.json()) as { access_token: string };
    if (!response.ok) throw new Error(JSON.stringify(body));
    tokens.set(key, body.access_token);
    return body.access_token;
  };
  const call = async (method: string, path: string, more: CallOptions = {}) => {
    const authorization = more.authorization ?? `Bearer ${await token(more.as, more.account, more.scope)}`;
    const body = more.raw ?? (more.body === undefined ? undefined : JSON.stringify(more.body));
    const response = await fetch(url() + path + queryText(more.query), {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...more.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : isJson && !response.headers.has("content-disposition") ? JSON.parse(text) : text,
    };
  };
  const ok = async (method: string, path: string, more: CallOptions = {}) => {
    const answer = await call(method, path, more);
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const settled = (operationId: string, more: CallOptions = {}) =>
    until(async () => {
      const body = await ok("GET", `/operations/${encodeURIComponent(operationId)}`, more);
      return body.status === "accepted" ? undefined : body;
    });
  return {
    url,
    form,
    token,
    call,
    ok,
    settled,
    /** Stores a file; the query is `{ Filename }` when it is a text. */
    upload: (content: string | Uint8Array<ArrayBuffer>, query: Query | string = "file.csv", more: CallOptions = {}) => {
      const { raw, headers } = multipartOf(content);
      const asked = typeof query === "string" ? { Filename: query } : query;
      return call("POST", "/storage", { ...more, query: asked, raw, headers: { ...headers, ...more.headers } });
    },
    get: (path: string, query?: Query, more: CallOptions = {}) =>
      ok("GET", path, { ...more, ...(query === undefined ? {} : { query }) }),
    post: (path: string, body: unknown, more: CallOptions = {}) => ok("POST", path, { ...more, body }),
    /** Pushes and waits for the outcome. */
    async push(elements: unknown, more: CallOptions = {}) {
      const accepted = await ok("POST", "/push/api/data", { ...more, body: elements });
      return settled(accepted.operationId, more);
    },
  };
}

export const GRANT = { grant_type: "password", client_id: "gateway", client_secret: "gateway-secret" };

export interface CallOptions {
  readonly as?: string;
  readonly account?: number;
  readonly scope?: string;
  readonly authorization?: string;
  readonly query?: Query;
  readonly body?: unknown;
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}

/** A body of one part for each content. */
export function multipartOf(...contents: readonly (string | Uint8Array<ArrayBuffer>)[]) {
  const boundary = "a-boundary";
  const parts = contents.flatMap((content, at) => [
    `--${boundary}\r\nContent-Disposition: form-data; name="part${at}"; filename="x"\r\n\r\n`,
    content,
    "\r\n",
  ]);
  const raw = Buffer.concat([...parts, `--${boundary}--\r\n`].map((part) => Buffer.from(part as string)));
  return { raw, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } };
}

function queryText(query: Query | undefined): string {
  if (query === undefined) return "";
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  return `?${parameters}`;
}

const WAIT_MS = 90_000;

/** Asks again until there is an answer. */
export async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error("waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

/**
 * The address of a route, with ids in the place of its parameters, and `rest` for what its wildcard takes.
 */
export function addressOf(route: HubRoute, ids: Readonly<Record<string, number | string>>, rest = "x"): string {
  const entity =
    /^\/(fileTrigger|storage|form|events(?=\/subscriptions)|(?:site|source|variable|view|group)(?=s))s?\//.exec(
      route.url,
    )?.[1] ?? "";
  const last = /variables\/:id$/.test(route.url) ? "variable" : /\/users\/:id/.test(route.url) ? "user" : entity;
  return route.url
    .replace(/:id\b/, String(ids[last] ?? 999_999))
    .replace(/:sourceId\b/, String(ids["source"] ?? 999_999))
    .replace(/:\w+/g, "x")
    .replace(/\*$/, rest);
}

/** A site, a source and variables of it; returns their ids. */
export async function createChain(
  hub: HubCalls,
  { zone = "Europe/Paris", source = {}, variables = [{}], more = {} }: ChainOptions = {},
): Promise<{ siteId: number; sourceId: number; variableIds: number[] }> {
  const siteId = await hub.post("/sites", { name: "Site", typeId: 3, timeZoneId: zone }, more);
  const made = await hub.post("/sources", { name: "Source", siteId, sourceTypeId: 1, ...source }, more);
  const variableIds: number[] = [];
  for (const variable of variables) {
    const body = { name: "Energy", sourceId: made.id, variableTypeId: 0, unitId: 8, ...variable };
    variableIds.push(await hub.post("/variables", body, more));
  }
  return { siteId, sourceId: made.id, variableIds };
}

export interface ChainOptions {
  readonly zone?: string;
  readonly source?: object;
  readonly variables?: readonly object[];
  readonly more?: CallOptions;
}

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A receiver of webhooks that answers with the given statuses in turn, then with 200. */
export async function startReceiver(statuses: number[] = []) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      received.push({ headers: request.headers, text: Buffer.concat(chunks).toString("utf8") });
      response.writeHead(statuses.shift() ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/webhooks/outcome`,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An operation of the first account that waits with these elements. */
export function waitingOperation(operationId: string, elements: object): NewOperation {
  return {
    accountId: 1,
    userId: 1,
    operationId,
    idempotencyKey: null,
    digest: "",
    timeoutSec: 60,
    received: 0,
    webhookUrl: null,
    acceptedMs: 0,
    body: Buffer.from(JSON.stringify(elements)),
  };
}
