/** One HTTP call with every limit that it needs: time, size of the answer, connections. Redirects are not followed. */
import { Readable } from "node:stream";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { systemCode, TransientError, wordsOf } from "../../support/errors.ts";

export interface HttpTimeouts {
  /** All in milliseconds. */
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
  /** Address of the proxy that calls go through (https by a tunnel), with user and password where it asks for them. */
  readonly proxy?: string | undefined;
}

export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is begun only when the call is. */
  readonly body?: string | (() => Buffer | Readable);
  /** Bytes of the answer that are read at most; the rest is cut off. */
  readonly answerMax: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** First value of each header, by its lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The text is not the whole answer: it was too large, or broke off. */
  readonly cut: "too large" | "broken off" | null;
}

export class HttpClient {
  readonly #agent: Dispatcher;
  readonly #totalMs: number;

  constructor(options: HttpOptions) {
    this.#totalMs = options.timeouts.total;
    const limits = {
      connections: options.connections,
      headersTimeout: options.timeouts.headers,
      bodyTimeout: options.timeouts.body,
      allowH2: false,
    };
    const connect = {
      timeout: options.timeouts.connect,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    };
    this.#agent =
      options.proxy === undefined
        ? new Agent({ ...limits, connect })
        : new ProxyAgent({ ...limits, uri: options.proxy, requestTls: connect, proxyTls: connect });
  }

  /** `TransientError` when no answer came; the reason of the signal when it was aborted. Any status is an answer. */
  async call(call: HttpCall): Promise<HttpAnswer> {
    call.signal.throwIfAborted();
    const stop = new AbortController();
    const abort = () => stop.abort(call.signal.reason);
    call.signal.addEventListener("abort", abort, { once: true });
    const timer = setTimeout(
      () => stop.abort(new Error(`no complete answer within ${this.#totalMs} ms`)),
      this.#totalMs,
    );
    try {
      return await this.#request(call, stop.signal);
    } catch (thrown) {
      if (call.signal.aborted) throw call.signal.reason;
      const code = systemCode(thrown);
      const words = wordsOf(stop.signal.aborted ? stop.signal.reason : thrown);
      throw new TransientError("HG-PUSH-001", {
        operation: `${call.method} ${call.url.pathname}`,
        subject: call.url.origin,
        message: `no answer from ${call.url.origin}: ${code === undefined || words.includes(code) ? words : `${words} (${code})`}`,
        cause: thrown,
      });
    } finally {
      clearTimeout(timer);
      call.signal.removeEventListener("abort", abort);
    }
  }

  async #request(call: HttpCall, signal: AbortSignal): Promise<HttpAnswer> {
    const body = typeof call.body === "function" ? call.body() : call.body;
    const stream = body instanceof Readable ? body : null;
    // A stream that undici never took over would otherwise fail later with nobody listening.
    stream?.on("error", () => {});
    try {
      const answer = await this.#agent.request({
        origin: call.url.origin,
        path: call.url.pathname + call.url.search,
        method: call.method,
        headers: call.headers,
        body: body ?? null,
        signal,
      });
      const headers: Record<string, string> = {};
      for (const [name, value] of Object.entries(answer.headers)) {
        const first = Array.isArray(value) ? value[0] : value;
        if (first !== undefined) headers[name] = first;
      }
      return { status: answer.statusCode, headers, ...(await readText(answer.body, call, signal)) };
    } finally {
      stream?.destroy();
    }
  }

  /** Ends what is under way. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** The status has come, so that a body which breaks off is no failure of the call, unless it was aborted. */
async function readText(
  body: Readable,
  call: HttpCall,
  signal: AbortSignal,
): Promise<Pick<HttpAnswer, "text" | "cut">> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let cut: HttpAnswer["cut"] = null;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const room = call.answerMax - bytes;
      chunks.push(chunk.subarray(0, room));
      bytes += chunk.length;
      if (chunk.length > room) {
        cut = "too large";
        break;
      }
    }
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    cut = "broken off";
  } finally {
    body.destroy();
  }
  return { text: Buffer.concat(chunks).toString("utf8"), cut };
}

/** Waits for a promise that others may share; rejects with the signal's reason when aborted, and leaves the promise to them. */
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
