/** A push of the client, and what the service answered. */
import type { HttpBody } from "./http.ts";

export interface PushCall {
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
