/** Outcomes as the service's webhook reports them (wire/webhook.ts). The ledger tolerates repeats and any order. */

import { masked } from "#core/secrets.ts";
import { parsedJson } from "#core/text.ts";
import { verifyWebhook, webhookBody } from "#wire/webhook.ts";
import type { Outcome } from "../model.ts";

const TEXT_CHARACTERS_MAX = 500;

export interface OutcomeWebhook {
  /** The exact bytes received, since they are signed. */
  readonly body: string | Buffer;
  /** Value of the signature header. */
  readonly signature: string | undefined;
  readonly secret: string;
  /** Unix time. */
  readonly nowSeconds: number;
}

export interface ReportedOutcome {
  readonly outcome: Outcome;
  /** The account that the sender claims; the caller that knows the operation compares it. */
  readonly account: string;
}

/** The outcome, or why it is not trusted. Unknown fields are ignored. */
export function readOutcomeWebhook(webhook: OutcomeWebhook): ReportedOutcome | { readonly refused: string } {
  const body = webhook.body.toString();
  const refused = verifyWebhook(body, webhook.secret, webhook.signature, webhook.nowSeconds);
  if (refused !== null) return { refused };
  const parsed = webhookBody.safeParse(parsedJson(body));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { refused: `the body has another shape: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}` };
  }
  const report = parsed.data;
  const outcome: Outcome = {
    operationId: report.operationId,
    by: "webhook",
    received: report.received,
    stored: report.stored,
    discarded: report.discarded.map(({ target, reason, count }) => ({
      target: cut(target),
      reason: cut(reason),
      points: count,
    })),
    at: instantOf(report.finished, webhook.nowSeconds),
  };
  return { outcome, account: report.account };
}

/** The sender's text goes into the ledger, the log and command output. */
function cut(sent: string): string {
  const text = masked(sent);
  return text.length <= TEXT_CHARACTERS_MAX ? text : `${text.slice(0, TEXT_CHARACTERS_MAX - 1)}…`;
}

/** The service's time in our format; the time of receipt when it cannot be read. */
function instantOf(text: string, nowSeconds: number): string {
  const ms = Date.parse(text);
  return new Date(Number.isNaN(ms) ? nowSeconds * 1000 : ms).toISOString();
}
