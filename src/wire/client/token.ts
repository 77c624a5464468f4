/**
 * The token of one service (specification, *Authentication*): requested once however many callers wait, kept until
 * shortly before `expires_in` runs out, and compared with the configured account at every refresh.
 */
import { decodeJwt } from "jose/jwt/decode";
import type { Clock } from "#core/clock.ts";
import { ConfigError, type ErrorCode, HeadgateError, TransientError } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import { type TokenResponse, tokenError, tokenResponse } from "../token.ts";
import { answerWords, retryAfterMs } from "./answers.ts";
import { type HttpAnswer, type HttpClient, orAborted } from "./http.ts";

export interface TokenAccess {
  /** Name of the service, for messages. */
  readonly name: string;
  /** Address of the token endpoint. */
  readonly token: string;
  readonly account?: string | undefined;
  readonly credentials: {
    readonly clientId: string;
    readonly clientSecret: string;
    readonly username: string;
    readonly password: string;
  };
  readonly scopes: readonly string[];
}

export interface Token {
  readonly value: string;
  /** The account that the token names; null when it is opaque or names none. */
  readonly account: string | null;
  /** The granted scopes, as far as response or token name them. */
  readonly scopes: readonly string[] | null;
}

/** Makes a token without the token endpoint, where the service runs in the same process. */
export type TokenMint = () => Promise<{ readonly value: string; readonly lifetimeMs: number }>;

export interface TokenMeans {
  readonly clock: Clock;
  /** Present: the token endpoint and the credentials are not used. */
  readonly mint?: TokenMint | undefined;
}

/** A token is renewed this long before it runs out, but at most a quarter of its life. */
const MARGIN_MS = 30_000;
const ANSWER_MAX = 256 * 1024;
/** Pause after a failure of the endpoint: doubled from the first to the last; a refusal waits for the last. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_LAST_MS = 30_000;

/** OAuth error codes (RFC 6749, 5.2) and the faults of the configuration that they mean. */
const REFUSALS: ReadonlyMap<string, ErrorCode> = new Map([
  ["invalid_client", "HG-PUSH-002"],
  ["unauthorized_client", "HG-PUSH-002"],
  ["invalid_grant", "HG-PUSH-003"],
  ["invalid_scope", "HG-PUSH-004"],
]);

export class TokenSource {
  readonly #access: TokenAccess;
  readonly #http: HttpClient;
  readonly #clock: Clock;
  readonly #mint: TokenMint | undefined;
  readonly #closed = new AbortController();
  #current: { readonly token: Token; readonly renewAtMs: number } | null = null;
  #pending: Promise<Token> | null = null;
  /** The account of the first token, where none is configured. */
  #account: string | null = null;
  #pause: { readonly untilMs: number; readonly ms: number; readonly error: Error } | null = null;

  /** With `mint` the credentials are not used. */
  constructor(access: TokenAccess, http: HttpClient, clock: Clock, mint?: TokenMint) {
    this.#access = access;
    this.#http = http;
    this.#clock = clock;
    this.#mint = mint;
  }

  /** The current token, or null when another has to be requested. */
  current(): Token | null {
    const current = this.#current;
    return current !== null && this.#clock.monotonicMs() < current.renewAtMs ? current.token : null;
  }

  /**
   * `ConfigError` when the endpoint refuses or the account is another, `TransientError` when it cannot be reached.
   * After a failure the same error is thrown for a while without another request.
   */
  async get(signal: AbortSignal): Promise<Token> {
    const current = this.current();
    if (current !== null) return current;
    const nowMs = this.#clock.monotonicMs();
    if (this.#pending === null) {
      if (this.#pause !== null && nowMs < this.#pause.untilMs) throw this.#pause.error;
      this.#pending = this.#renew().finally(() => {
        this.#pending = null;
      });
      // Every waiting caller may have been aborted; then no caller handles a failure.
      this.#pending.catch(() => {});
    }
    return orAborted(this.#pending, signal);
  }

  /** The service refused this token. A token that was renewed meanwhile stays. */
  invalidate(value: string): void {
    if (this.#current?.token.value === value) this.#current = null;
  }

  close(): void {
    this.#closed.abort(new Error("the service client was closed"));
  }

  async #renew(): Promise<Token> {
    const startedMs = this.#clock.monotonicMs();
    try {
      const { token, expiresInMs } = await (this.#mint === undefined ? this.#request() : this.#minted(this.#mint));
      const margin = Math.min(MARGIN_MS, expiresInMs / 4);
      this.#current = { token, renewAtMs: startedMs + expiresInMs - margin };
      this.#pause = null;
      return token;
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      const refused = error instanceof HeadgateError && !(error instanceof TransientError);
      const next = this.#pause === null ? PAUSE_FIRST_MS : this.#pause.ms * 2;
      const ms = refused ? PAUSE_LAST_MS : Math.min(PAUSE_LAST_MS, next);
      const requestedMs = thrown instanceof Throttled ? (thrown.retryAfterMs ?? 0) : 0;
      this.#pause = { untilMs: this.#clock.monotonicMs() + Math.max(ms, requestedMs), ms, error };
      throw error;
    }
  }

  async #minted(mint: TokenMint): Promise<{ token: Token; expiresInMs: number }> {
    const { value, lifetimeMs } = await mint();
    return { token: readToken({ access_token: value }), expiresInMs: lifetimeMs };
  }

  async #request(): Promise<{ token: Token; expiresInMs: number }> {
    const { credentials, scopes, account } = this.#access;
    const form = new URLSearchParams({
      grant_type: "password",
      client_id: credentials.clientId,
      client_secret: credentials.clientSecret,
      username: credentials.username,
      password: credentials.password,
      scope: scopes.join(" "),
      ...(account === undefined ? {} : { account }),
    });
    const { origin, pathname, search } = new URL(this.#access.token);
    const answer = await this.#http.call({
      method: "POST",
      origin,
      path: pathname + search,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: form.toString(),
      answerMax: ANSWER_MAX,
      signal: this.#closed.signal,
    });
    const body = parsedJson(answer.text);
    const granted = tokenResponse.safeParse(body);
    if (answer.status !== 200 || !granted.success) throw this.#failure(answer, body);
    const token = readToken(granted.data);
    if (account !== undefined && token.account !== null && token.account !== account)
      throw new ConfigError("HG-PUSH-005", {
        operation: "get token",
        subject: this.#access.name,
        message: `the token belongs to account ${token.account}, but account ${account} is configured`,
      });
    if (account === undefined) this.#keepToAccount(token);
    return { token, expiresInMs: granted.data.expires_in * 1000 };
  }

  /**
   * Without a configured account the token is for the account that the user touched last, which may change at any time.
   */
  #keepToAccount(token: Token): void {
    if (this.#account === null || token.account === null || token.account === this.#account) {
      this.#account ??= token.account;
      return;
    }
    throw new ConfigError("HG-PUSH-005", {
      operation: "get token",
      subject: this.#access.name,
      message:
        `the token belongs to account ${token.account} now, and to account ${this.#account} before: no ` +
        "account is configured, so that it follows the user",
      hint:
        "Set `account` of the service. Nothing is pushed until the token is for the same account again, " +
        "or the gateway is restarted.",
    });
  }

  #failure(answer: HttpAnswer, body: unknown): Error {
    const facts = { operation: "get token", subject: this.#access.name };
    if (answer.status >= 500 || answer.status === 429 || answer.status === 408 || answer.cut !== null)
      return new Throttled(
        { ...facts, message: `the token endpoint answered ${answerWords(answer)}` },
        retryAfterMs(answer.headers, this.#clock.now()),
      );
    const refused = tokenError.safeParse(body);
    if (refused.success && answer.status >= 400) {
      const { error, error_description: description } = refused.data;
      return new ConfigError(REFUSALS.get(error) ?? "HG-PUSH-006", {
        ...facts,
        message:
          `the token endpoint answered ${answer.status} ` +
          `${error}${description === undefined ? "" : `: ${description}`}`,
      });
    }
    if (answer.status === 401)
      return new ConfigError("HG-PUSH-002", {
        ...facts,
        message:
          `the token endpoint answered ${answerWords(answer)}, without saying whether the client or the ` +
          "user is wrong",
        hint:
          "Correct the client credentials (clientId, clientSecret) or the user credentials (username, " +
          "password) of the service.",
      });
    const words = answerWords(answer).slice(0, answer.status === 200 ? 8 : undefined);
    return new ConfigError("HG-PUSH-006", { ...facts, message: `the token endpoint gave no token: ${words}` });
  }
}

class Throttled extends TransientError {
  readonly retryAfterMs: number | null;

  constructor(facts: ConstructorParameters<typeof TransientError>[1], waitMs: number | null) {
    super("HG-PUSH-001", facts);
    this.name = "TransientError";
    this.retryAfterMs = waitMs;
  }
}

/** The claims are read, not trusted: the service verifies the token. */
interface Claims {
  readonly account?: unknown;
  readonly accountId?: unknown;
  readonly account_id?: unknown;
  readonly scope?: unknown;
  readonly scp?: unknown;
}

function readToken(granted: Pick<TokenResponse, "access_token" | "scope">): Token {
  const claims = readClaims(granted.access_token);
  const account = [claims.account, claims.accountId, claims.account_id].find(
    (claim) => typeof claim === "string" || typeof claim === "number",
  );
  return {
    value: granted.access_token,
    account: account === undefined ? null : String(account),
    scopes: scopeList(granted.scope ?? claims.scope ?? claims.scp),
  };
}

function scopeList(scope: unknown): readonly string[] | null {
  if (typeof scope === "string") return scope.split(/\s+/).filter((word) => word !== "");
  return Array.isArray(scope) ? scope.map(String) : null;
}

function readClaims(value: string): Claims {
  try {
    return decodeJwt<Claims>(value);
  } catch {
    // An opaque token makes no claims.
    return {};
  }
}
