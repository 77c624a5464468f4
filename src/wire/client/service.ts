/**
 * The client of one service: token, connections and limits of its own (invariant 11).
 * `Api-Version` and authorisation are on every call; a 401 renews the token once and replays the call.
 */
import { z } from "zod";
import type { Clock, ClockSeen } from "#core/clock.ts";
import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import { type DataQuery, type DataRow, dataRows, type Removal, type RemovalQuery, removal } from "../data.ts";
import {
  type SiteBody,
  type SitesQuery,
  type Source,
  type SourceBody,
  type SourcesQuery,
  site,
  source,
  type VariableBody,
  type VariablesQuery,
  variable,
} from "../structure.ts";
import { type ListedUnit, listedUnit } from "../units.ts";
import { type ServiceOperation, serviceOperation } from "../webhook.ts";
import { answerWords, isWebPage, repeatedBy, retryAfterMs, webhookRefusalOf } from "./answers.ts";
import { type HttpAnswer, type HttpBody, type HttpCall, HttpClient, type HttpTimeouts } from "./http.ts";
import { type Token, type TokenAccess, type TokenMeans, TokenSource } from "./token.ts";

export interface ServiceAccess extends TokenAccess {
  /** Addresses of the read and management interface and of the push interface. */
  readonly base: string;
  readonly push: string;
  readonly apiVersion: string;
  /** How pushes authenticate. */
  readonly auth: "bearer" | "basic";
  readonly ca?: string | undefined;
  readonly proxy?: string | undefined;
}

export interface ClientOptions extends TokenMeans {
  readonly connections: number;
  readonly timeouts: HttpTimeouts;
  /** Where the origin of pushed readings is shown; services that do not know the header ignore it. */
  readonly traceLink?: string | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Value of `x-total-count`, when it was requested and sent. */
  readonly total: number | null;
}

const READ_ANSWER_MAX = 32 * 1024 ** 2;
const named = z.object({ id: z.number().int(), name: z.string() });
type Named = z.infer<typeof named>;
/** A bare number, or an object with it. */
const count = z.union([
  z.int().nonnegative(),
  z.object({ count: z.int().nonnegative() }).transform((answer) => answer.count),
]);

type Call = Omit<HttpCall, "headers" | "signal"> & { readonly headers?: Readonly<Record<string, string>> };

/** Only some text of a push response is kept; a longer body would only occupy memory. */
const PUSH_ANSWER_MAX = 64 * 1024;

export class ServiceClient {
  readonly #access: ServiceAccess;
  readonly #http: HttpClient;
  readonly #tokens: TokenSource;
  readonly #clock: Clock;
  readonly #traceLink: string | undefined;
  /** The push address; each push has a query of its own. */
  readonly #pushAddress: Address;
  readonly #pushPath: string;
  #clockSeen: ClockSeen | null = null;

  constructor(access: ServiceAccess, options: ClientOptions) {
    this.#access = access;
    this.#pushAddress = address(access.push, "/api/data", {});
    this.#pushPath = `${this.#pushAddress.path}${this.#pushAddress.path.includes("?") ? "&" : "?"}`;
    this.#clock = options.clock;
    this.#traceLink = options.traceLink;
    this.#http = new HttpClient({
      connections: options.connections,
      timeouts: options.timeouts,
      ca: access.ca,
      proxy: access.proxy,
    });
    this.#tokens = new TokenSource(access, this.#http, options.clock, options.mint);
  }

  get name(): string {
    return this.#access.name;
  }

  /** The service's time, as its latest answer says; null before the first one that does. */
  get clockSeen(): ClockSeen | null {
    return this.#clockSeen;
  }

  /** See `TokenSource.get` for its errors. */
  token(signal: AbortSignal): Promise<Token> {
    return this.#tokens.get(signal);
  }

  /**
   * Every status but 401 is a response, for the retry table to judge. `TransientError` when none came: the outcome is
   * unknown. `ConfigError` when the credentials, the scope or the token are refused.
   */
  async push(call: PushCall, signal: AbortSignal): Promise<PushAnswer> {
    const { operationId, operationTimeoutSec, webhookUrl, traceparent } = call;
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "content-length": String(call.length),
      "idempotency-key": headerSafe(call.idempotencyKey),
    };
    if (traceparent !== undefined) headers["traceparent"] = traceparent;
    if (this.#traceLink !== undefined) headers["x-trace-link"] = headerSafe(this.#traceLink);
    const webhook = webhookUrl === undefined ? "" : `&webhookUrl=${queryValue(webhookUrl)}`;
    const query = `operationId=${queryValue(operationId)}&operationTimeoutSec=${operationTimeoutSec}${webhook}`;
    const request: Call = {
      method: "POST",
      origin: this.#pushAddress.origin,
      path: `${this.#pushPath}${query}`,
      headers,
      body: call.body,
      answerMax: PUSH_ANSWER_MAX,
    };
    const answer =
      this.#access.auth === "basic"
        ? await this.#callWithPassword(request, signal)
        : await this.#call(request, "push-data", signal);
    return {
      status: answer.status,
      words: answerWords(answer),
      retryAfterMs:
        answer.headers["retry-after"] === undefined ? null : retryAfterMs(answer.headers, this.#clock.now()),
      webPage: isWebPage(answer),
      webhookRefusal: webhookRefusalOf(answer.headers),
      repeats: repeatedBy(answer),
    };
  }

  postData(query: DataQuery, signal: AbortSignal): Promise<readonly DataRow[]> {
    return this.#post("/data", query, dataRows, signal);
  }

  /** With `WhatIf` nothing is removed, and the response says what would be. */
  async deleteData(query: RemovalQuery, signal: AbortSignal): Promise<Removal> {
    const answer = await this.#ask("DELETE", "/data", query, signal);
    return this.#read(answer, removal, "DELETE /data");
  }

  getSites(query: SitesQuery, signal: AbortSignal) {
    return this.#get("/sites", query, site.array(), signal);
  }

  getSources(query: SourcesQuery, signal: AbortSignal) {
    return this.#get("/sources", query, source.array(), signal);
  }

  getVariables(query: VariablesQuery, signal: AbortSignal) {
    return this.#get("/variables", query, variable.array(), signal);
  }

  getUnits(signal: AbortSignal): Promise<readonly ListedUnit[]> {
    return this.#get("/units", {}, listedUnit.array(), signal).then(({ items }) => items);
  }

  /** A referential of ids and names, such as `/sourceTypes`. */
  getNamed(path: string, signal: AbortSignal): Promise<readonly Named[]> {
    return this.#get(path, {}, named.array(), signal).then(({ items }) => items);
  }

  /** A page of items as they came, of any shape. */
  getItems(path: string, query: Query, signal: AbortSignal): Promise<Page<unknown>> {
    return this.#get(path, query, z.unknown().array(), signal);
  }

  getCount(path: string, signal: AbortSignal): Promise<number> {
    const answer = this.#ask("GET", path, {}, signal);
    return answer.then((got) => this.#read(got, count, `GET ${path}`));
  }

  /** The service's record of a push; null when it has none, or is no service that keeps them. */
  async getOperation(operationId: string, signal: AbortSignal): Promise<ServiceOperation | null> {
    const path = `/operations/${encodeURIComponent(operationId)}`;
    const answer = await this.#ask("GET", path, {}, signal);
    return [404, 405, 501].includes(answer.status)
      ? null
      : this.#read(answer, serviceOperation, "GET /operations/{id}");
  }

  /** The id of the new site. */
  postSite(body: SiteBody, signal: AbortSignal): Promise<number> {
    return this.#post("/sites", body, site.shape.id.or(site.pick({ id: true })), signal).then(idOf);
  }

  postSource(body: SourceBody, signal: AbortSignal): Promise<Source> {
    return this.#post("/sources", body, source, signal);
  }

  /** The id of the new variable. */
  postVariable(body: VariableBody, signal: AbortSignal): Promise<number> {
    return this.#post("/variables", body, variable.shape.id.or(variable.pick({ id: true })), signal).then(idOf);
  }

  /**
   * False when it was already gone; this also holds for the two methods below. Some services also delete everything
   * below it.
   */
  deleteVariable(sourceId: number, id: number, signal: AbortSignal): Promise<boolean> {
    return this.#delete(`/sources/${sourceId}/variables/${id}`, signal);
  }

  deleteSource(id: number, signal: AbortSignal): Promise<boolean> {
    return this.#delete(`/sources/${id}`, signal);
  }

  deleteSite(id: number, signal: AbortSignal): Promise<boolean> {
    return this.#delete(`/sites/${id}`, signal);
  }

  /** Aborts the running calls. */
  async close(): Promise<void> {
    this.#tokens.close();
    await this.#http.close();
  }

  async #get<Item>(path: string, query: Query, schema: z.ZodType<Item[]>, signal: AbortSignal): Promise<Page<Item>> {
    const answer = await this.#ask("GET", path, query, signal);
    const total = answer.headers["x-total-count"];
    return {
      items: this.#read(answer, schema, `GET ${path}`),
      total: typeof total === "string" && /^\d{1,15}$/.test(total) ? Number(total) : null,
    };
  }

  async #post<Value>(path: string, body: Query, schema: z.ZodType<Value>, signal: AbortSignal): Promise<Value> {
    return this.#read(await this.#ask("POST", path, {}, signal, body), schema, `POST ${path}`);
  }

  async #delete(path: string, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#ask("DELETE", path, {}, signal);
    if (answer.status === 404) return false;
    this.#read(answer, z.unknown(), `DELETE ${path}`);
    return true;
  }

  #ask(method: Call["method"], path: string, query: Query, signal: AbortSignal, body?: Query): Promise<HttpAnswer> {
    const json = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const to = address(this.#access.base, path, query);
    const call: Call = { method, ...to, answerMax: READ_ANSWER_MAX, ...(body === undefined ? {} : json) };
    return this.#call(call, "datahub-api", signal);
  }

  async #call(call: Call, scope: string, signal: AbortSignal): Promise<HttpAnswer> {
    const token = this.#tokens.current() ?? (await this.#tokens.get(signal));
    const answer = await this.#send(call, `Bearer ${token.value}`, signal);
    if (answer.status !== 401) return answer;
    this.#tokens.invalidate(token.value);
    const renewed = await this.#tokens.get(signal);
    const second = await this.#send(call, `Bearer ${renewed.value}`, signal);
    if (second.status !== 401) return second;
    throw refusedToken(second, { token: renewed, scope, subject: this.#access.name });
  }

  async #callWithPassword(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    const { username, password } = this.#access.credentials;
    const pair = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
    const answer = await this.#send(call, `Basic ${pair}`, signal);
    if (answer.status !== 401) return answer;
    throw refusedPassword(answer, call, this.#access.name);
  }

  async #send(call: Call, authorization: string, signal: AbortSignal): Promise<HttpAnswer> {
    const headers = {
      ...call.headers,
      accept: "application/json",
      authorization,
      "api-version": this.#access.apiVersion,
      "user-agent": "headgate",
    };
    const beforeMs = this.#clock.now().epochMilliseconds;
    const answer = await this.#http.call({ ...call, headers, signal });
    this.#noteClock(answer.headers, beforeMs);
    return answer;
  }

  /** By the header `Date` (RFC 9110, 6.6.1), in seconds; an answer of a cache (`Age`) says when it was made. */
  #noteClock({ date, age }: HttpAnswer["headers"], beforeMs: number): void {
    const serverMs = date === undefined || age !== undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(serverMs)) return;
    this.#clockSeen = { serverMs, precisionMs: 1_000, beforeMs, afterMs: this.#clock.now().epochMilliseconds };
  }

  #read<Value>(answer: HttpAnswer, schema: z.ZodType<Value>, operation: string): Value {
    return readAnswer(answer, schema, { operation, subject: this.#access.name });
  }
}

function idOf(answer: number | { readonly id: number }): number {
  return typeof answer === "number" ? answer : answer.id;
}

// Addresses and header values of calls.

/** A query in the form of the wire schemas. */
type Query = Readonly<Record<string, unknown>>;
type Address = Pick<HttpCall, "origin" | "path">;

/** Lists become repeated keys; undefined values are left out. */
function address(base: string, path: string, query: Query): Address {
  const url = new URL(base);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  for (const [key, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined) url.searchParams.append(key, String(item));
  }
  return { origin: url.origin, path: url.pathname + url.search };
}

function queryValue(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Header values are visible ASCII; an operation id may hold anything. */
function headerSafe(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : queryValue(text);
}

// Errors for calls whose authorization the service refused.

/** The token is new and so has not expired: either a scope is missing, or the service does not know its issuer. */
function refusedToken(
  answer: HttpAnswer,
  { token, scope, subject }: { readonly token: Token; readonly scope: string; readonly subject: string },
): ConfigError {
  const missing = token.scopes !== null && !token.scopes.includes(scope);
  const granted = token.scopes === null ? "" : ` (granted: ${token.scopes.join(" ") || "none"})`;
  return new ConfigError("HG-PUSH-007", {
    operation: "authorise",
    subject,
    message: missing
      ? `scope ${scope} missing: the token was granted without it${granted}; ${answerWords(answer)}`
      : `a new token was refused as well, so it has not expired: scope ${scope} missing${granted}, or ` +
        `a token of another issuer; ${answerWords(answer)}`,
    hint:
      `Add ${scope} to the service's \`scopes\`, have the client granted it, and check that \`token\` ` +
      "belongs to this service.",
  });
}

function refusedPassword(
  answer: HttpAnswer,
  { method, path }: Pick<HttpCall, "method" | "path">,
  subject: string,
): ConfigError {
  return new ConfigError("HG-PUSH-003", {
    operation: `${method} ${path.split("?", 1)[0]}`,
    subject,
    message: `the service refuses user and password: ${answerWords(answer)}`,
  });
}

// The value of a response of the read and management interface, or the error that the response means.

/** Throws `TransientError` when the call may succeed later. */
function readAnswer<Value>(
  answer: HttpAnswer,
  schema: z.ZodType<Value>,
  facts: { readonly operation: string; readonly subject: string },
): Value {
  const { operation } = facts;
  const { status } = answer;
  if (status >= 500 || status === 429 || status === 408 || answer.cut === "broken off")
    throw new TransientError("HG-PUSH-001", {
      ...facts,
      message: `${operation} answered ${answerWords(answer)}`,
    });
  if (status === 403)
    throw new ConfigError("HG-PUSH-008", {
      ...facts,
      message: `${operation} answered ${answerWords(answer)}`,
    });
  if (status < 200 || status > 299 || answer.cut !== null)
    throw new RejectedError("HG-PUSH-010", {
      ...facts,
      message:
        `${operation} answered ` +
        `${answer.cut === null ? answerWords(answer) : `more than ${READ_ANSWER_MAX} bytes`}`,
    });
  const parsed = schema.safeParse(parsedJson(answer.text));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ConfigError("HG-PUSH-009", {
    ...facts,
    message: `${operation} gave an answer of another shape: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`,
  });
}

// A push of the client, and what the service answered.

interface PushCall {
  /** Called once more after a 401, which sends the bytes again. */
  readonly body: () => HttpBody;
  /** Bytes. */
  readonly length: number;
  readonly operationId: string;
  readonly operationTimeoutSec: number;
  readonly idempotencyKey: string;
  readonly webhookUrl?: string | undefined;
  /** Trace that the call belongs to (W3C Trace Context). */
  readonly traceparent?: string | undefined;
}

export interface PushAnswer {
  readonly status: number;
  /** The service's message, shortened. */
  readonly words: string;
  readonly retryAfterMs: number | null;
  /** The response is a web page: this is not the service. */
  readonly webPage: boolean;
  /**
   * Why the service will not send the outcome to the `webhookUrl` of the call; absent: the service reported no refusal.
   */
  readonly webhookRefusal?: string | undefined;
  /**
   * The operation whose answer the service repeated, since its Idempotency-Key came before; empty where it did not
   * name it. Absent: the push was taken as a new one, or the service knows no such keys.
   */
  readonly repeats?: string | undefined;
}
