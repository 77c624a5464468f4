/** One HTTP call with all its limits: time, size of the response, connections. Redirects are not followed. */
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { systemCode, TransientError, wordsOf } from "#core/errors.ts";

export interface HttpTimeouts {
  /** All values are in milliseconds. */
  readonly connect: number;
  readonly headers: number;
  readonly body: number;
  readonly total: number;
}

export interface HttpOptions {
  /** Most connections to one origin. */
  readonly connections: number;
  readonly timeouts: HttpTimeouts;
  /** PEM certificates trusted instead of the system's. */
  readonly ca?: string | undefined;
  /** Address of the proxy that calls go through (https by a tunnel), with user and password where it requires them. */
  readonly proxy?: string | undefined;
}

/** Bytes, or a new stream or iterable of them. */
export type HttpBody = Buffer | Readable | AsyncIterable<Buffer>;

export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Such as `https://push.example.com`. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The stream is created when the call starts. */
  readonly body?: string | (() => HttpBody);
  /** Limit on the bytes of the response that are read; the rest is cut off. */
  readonly answerMax: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** First value of each header, by its lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The text is incomplete: the response was too large, or broke off. */
  readonly cut: "too large" | "broken off" | null;
}

export class HttpClient {
  readonly #options: HttpOptions;
  /** Null before the first call, which loads the library. */
  #agent: Promise<Dispatcher> | null = null;
  #isClosed = false;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  /** `TransientError` when no response came; the reason of the signal when it was aborted. Any status is a response. */
  call(call: HttpCall): Promise<HttpAnswer> {
    if (call.signal.aborted) return Promise.reject(call.signal.reason);
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(call, this.#options.timeouts.total, resolve, reject);
      this.#agent ??= openAgent(this.#options);
      this.#agent.then(
        (agent) => (this.#isClosed ? exchange.fail(new Error("the client is closed")) : exchange.begin(agent)),
        (thrown: unknown) => exchange.fail(thrown),
      );
    });
  }

  /** Aborts the running calls. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#agent)?.destroy();
  }
}

/** Loads the library ahead of the first call, which reports a fault of it. */
export function prepareHttp(): void {
  import("undici").catch(() => undefined);
}

async function openAgent({ connections, timeouts, ca, proxy }: HttpOptions): Promise<Dispatcher> {
  const { Agent, ProxyAgent } = await import("undici");
  const limits = { connections, headersTimeout: timeouts.headers, bodyTimeout: timeouts.body, allowH2: false };
  const connect = { timeout: timeouts.connect, ...(ca === undefined ? {} : { ca }) };
  return proxy === undefined
    ? new Agent({ ...limits, connect })
    : new ProxyAgent({ ...limits, uri: proxy, requestTls: connect, proxyTls: connect });
}

/**
 * One call, as a handler of undici. It reads the response directly: a stream for each call and a signal that joins its
 * limits would cost more than the rest of a small call.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #call: HttpCall;
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  /** The stream of the request, where there is one. */
  #stream: Readable | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #isOver = false;
  /** Null before the first line of the response. */
  #status: number | null = null;
  #headers: HttpAnswer["headers"] = {};
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(
    call: HttpCall,
    totalMs: number,
    resolve: (answer: HttpAnswer) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#call = call;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = setTimeout(() => {
      this.fail(new Error(`no complete answer within ${totalMs} ms`));
    }, totalMs);
    call.signal.addEventListener("abort", this);
  }

  begin(agent: Dispatcher): void {
    // Aborted while the library was loaded.
    if (this.#isOver) return;
    const { method, origin, path, headers, body } = this.#call;
    try {
      const sent = typeof body === "function" ? body() : (body ?? null);
      if (sent instanceof Readable) {
        this.#stream = sent;
        // A stream that undici never took over would otherwise emit an unhandled error later.
        sent.on("error", () => {});
      }
      // undici also takes iterables; its types do not name them here.
      agent.dispatch({ origin, path, method, headers, body: sent as Buffer | Readable | string | null }, this);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /** Called when the signal is aborted. */
  handleEvent(): void {
    this.#end(this.#call.signal.reason);
    this.#reject(this.#call.signal.reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The call ended while it waited for a connection.
    if (this.#isOver) controller.abort(new Error("the call has ended"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational responses before the final one, such as early hints.
    if (status < 200) return;
    this.#status = status;
    this.#headers = firstValues(headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    const available = this.#call.answerMax - this.#bytes;
    this.#bytes += chunk.length;
    this.#chunks.push(chunk.length > available ? chunk.subarray(0, available) : chunk);
    if (chunk.length > available) this.#answer("too large");
  }

  onResponseEnd(): void {
    this.#answer(null);
  }

  /** Once the status has come, a body that breaks off is not a failure of the call. */
  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#status === null) this.fail(error);
    else this.#answer("broken off");
  }

  #answer(cut: HttpAnswer["cut"]): void {
    if (this.#isOver) return;
    this.#end(cut === null ? null : new Error(`the answer was ${cut}`));
    const [first] = this.#chunks;
    const bytes = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first;
    this.#resolve({
      status: this.#status ?? 0,
      headers: this.#headers,
      text: bytes === undefined ? "" : bytes.toString("utf8"),
      cut,
    });
  }

  /** Rejects the call: no response came. */
  fail(thrown: unknown): void {
    if (this.#isOver) return;
    this.#end(thrown);
    const { method, origin, path } = this.#call;
    const code = systemCode(thrown);
    const words = wordsOf(thrown);
    this.#reject(
      new TransientError("HG-PUSH-001", {
        operation: `${method} ${path.split("?", 1)[0]}`,
        subject: origin,
        message:
          `no answer from ${origin}: ` + `${code === undefined || words.includes(code) ? words : `${words} (${code})`}`,
        cause: thrown,
      }),
    );
  }

  /** Ends the call and releases its resources; `reason`: why its connection is closed, or null. */
  #end(reason: unknown): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#call.signal.removeEventListener("abort", this);
    this.#stream?.destroy();
    if (reason !== null) this.#controller?.abort(reason instanceof Error ? reason : new Error(String(reason)));
  }
}

function firstValues(headers: IncomingHttpHeaders): HttpAnswer["headers"] {
  const first: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const one = Array.isArray(value) ? value[0] : value;
    if (one !== undefined) first[name] = one;
  }
  return first;
}

/**
 * Waits for a promise that other callers may share; rejects with the signal's reason when aborted, and does not affect
 * the promise.
 */
export async function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
