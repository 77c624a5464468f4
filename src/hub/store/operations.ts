/** The contract of the queue of operations and of their outcomes, a part of `store.ts`. */
import type { WebhookBody } from "#wire/index.ts";
import type { Listing, Page } from "./records.ts";

export interface NewOperation {
  readonly accountId: number;
  readonly userId: number;
  readonly operationId: string;
  readonly idempotencyKey: string | null;
  /** SHA-256 of the body, lower-case hexadecimal. */
  readonly digest: string;
  readonly timeoutSec: number;
  /** Readings in the body. */
  readonly received: number;
  readonly webhookUrl: string | null;
  /** The calculation that made its readings; absent: it is a push. No request sets it. */
  readonly calculationId?: number | null;
  /** Address at which the sender shows where its readings came from. */
  readonly traceLink?: string | null;
  readonly acceptedMs: number;
  /** As received, or compressed (`hub/push/body-compression.ts`). */
  readonly body: Uint8Array;
}

export type KeyedPush = Pick<NewOperation, "accountId" | "idempotencyKey" | "digest">;

export type Acceptance = { readonly kind: "accepted"; readonly seq: number } | EarlierAcceptance;

export type EarlierAcceptance =
  /** The same key came with the same body before: the earlier response is repeated. */
  | { readonly kind: "repeated"; readonly operationId: string; readonly received: number }
  /** The same key came with another body before. */
  | { readonly kind: "conflict"; readonly operationId: string };

export type Outcome = Omit<WebhookBody, "operationId" | "account" | "file">;

export interface OperationRecord {
  /** In the order of acceptance. */
  readonly seq: number;
  readonly operationId: string;
  readonly accountId: number;
  readonly userId: number;
  readonly state: "accepted" | "done" | "failed";
  readonly received: number;
  readonly acceptedMs: number;
  readonly webhook: {
    readonly state: string;
    readonly attempts: number;
    readonly error: string | null;
  } | null;
  readonly outcome: Outcome | null;
}

export interface DueWebhook {
  readonly seq: number;
  readonly accountId: number;
  readonly userId: number;
  /** With its port. */
  readonly host: string;
  readonly url: string;
  readonly attempts: number;
  readonly body: WebhookBody;
}

/** Receivers that must wait: those with a running delivery, or with their maximum of deliveries. */
interface BusyReceivers {
  readonly seqs: readonly number[];
  /** Hosts within an account. */
  readonly hosts: readonly { readonly accountId: number; readonly host: string }[];
  readonly accounts: readonly number[];
}

/** Of all accounts. */
export interface QueueCounts {
  /** Operations that wait to be applied. */
  readonly waiting: number;
  /** When the longest waiting one was accepted; null when none waits. */
  readonly oldestMs: number | null;
  /** Failed operations, whose bodies are kept. */
  readonly failed: number;
  /** Outcomes that are still to be delivered to the webhook of their push. */
  readonly webhooks: number;
}

export interface OperationStore {
  /**
   * Returns the response to a push whose Idempotency-Key belongs to an accepted operation; null when the key
   * is new.
   */
  earlier(push: KeyedPush): Promise<EarlierAcceptance | null>;
  /** Durable when it resolves. Operations of an account are applied in the order of the calls. */
  accept(operation: NewOperation): Promise<Acceptance>;
  /**
   * Drops the bodies of applied operations (those of failed ones stay) and makes their webhooks due.
   * Operations without an outcome are skipped.
   */
  finish(seqs: readonly number[]): Promise<void>;
  /** The newest operation of that id. */
  operation(accountId: number, operationId: string): Promise<OperationRecord | null>;
  counts(): Promise<QueueCounts>;
  /** In the order of their acceptance. */
  list(accountId: number, state: "accepted" | "failed", page: Page): Promise<Listing<OperationRecord>>;
  /**
   * Failed operations of that id wait to be applied again, with another timeout when one is given; returns
   * how many.
   */
  applyAgain(accountId: number, operationId: string, timeoutSec: number | null): Promise<number>;
  /**
   * Drops the bodies of failed operations of that id: from then on they are done, and their outcomes stay.
   * Returns how many.
   */
  dropFailed(accountId: number, operationId: string): Promise<number>;
  /** At most one for each account and host, the longest due first. */
  dueWebhooks(nowMs: number, limit: number, busy: BusyReceivers): Promise<readonly DueWebhook[]>;
  /** When the next webhook after that time is due; null when none is. */
  nextWebhookMs(afterMs: number): Promise<number | null>;
  webhookDelivered(seq: number): Promise<void>;
  /** `nextMs` null: the webhook is given up. */
  webhookFailed(seq: number, error: string, nextMs: number | null): Promise<void>;
  /**
   * Forgets the idempotency keys of done operations, and done operations without a key, accepted before these
   * times. In small transactions.
   */
  purge(keysBeforeMs: number, outcomesBeforeMs: number): Promise<void>;
}
