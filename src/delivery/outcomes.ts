/** Outcomes as the service's webhook tells them (wire/webhook.ts). Repeats and any order are the ledger's to bear. */
import type { Outcome } from "../model.ts";
import { masked } from "../support/secrets.ts";
import { verifyWebhook, webhookBody } from "../wire/index.ts";

const TEXT_CHARACTERS_MAX = 500;

export interface OutcomeWebhook {
  /** Exactly the bytes received, since they are signed. */
  readonly body: string | Buffer;
  /** Value of the signature header. */
  readonly signature: string | undefined;
  readonly secret: string;
  /** Unix time. */
  readonly nowSeconds: number;
}

export interface ToldOutcome {
  readonly outcome: Outcome;
  /** Whose it is, by the sender's word: who knows the operation compares it. */
  readonly account: string;
}

/** The outcome, or why it is not believed. Unknown fields are ignored. */
export function readOutcomeWebhook(webhook: OutcomeWebhook): ToldOutcome | { readonly refused: string } {
  const body = webhook.body.toString();
  const refused = verifyWebhook(body, webhook.secret, webhook.signature, webhook.nowSeconds);
  if (refused !== null) return { refused };
  const parsed = webhookBody.safeParse(parse(body));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { refused: `the body has another shape: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}` };
  }
  const told = parsed.data;
  const outcome: Outcome = {
    operationId: told.operationId,
    by: "webhook",
    received: told.received,
    stored: told.stored,
    discarded: told.discarded.map(({ target, reason, count }) => ({
      target: cut(target),
      reason: cut(reason),
      points: count,
    })),
    at: instantOf(told.finished, webhook.nowSeconds),
  };
  return { outcome, account: told.account };
}

/** The sender's words go into the ledger, the log and what commands print. */
function cut(told: string): string {
  const text = masked(told);
  return text.length <= TEXT_CHARACTERS_MAX ? text : `${text.slice(0, TEXT_CHARACTERS_MAX - 1)}…`;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Told as a body of another shape.
    return undefined;
  }
}

/** The service's time in our spelling; the time of receipt when it cannot be read. */
function instantOf(text: string, nowSeconds: number): string {
  const ms = Date.parse(text);
  return new Date(Number.isNaN(ms) ? nowSeconds * 1000 : ms).toISOString();
}
