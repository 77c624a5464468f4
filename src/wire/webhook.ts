/**
 * Webhooks of outcomes. The specification shows no payload; this one is an extension of Headgate
 * (`docs/hub/readings.md`). Signed in the header `X-Headgate-Signature`: `t=<unix seconds>,v1=<hex HMAC-SHA256
 * of "<t>.<body>">`.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { pushOrigin } from "./origin.ts";

export const SIGNATURE_HEADER = "x-headgate-signature";
/**
 * Header of Headgate for responses that carry more than their status; several warnings are joined by "; ".
 */
export const WARNING_HEADER = "x-headgate-warning";
/** Begins the warning of a push whose outcome will not be sent to its `webhookUrl`. */
export const WEBHOOK_WARNING = "webhookUrl:";
/** A signature older or newer than this is refused. */
export const SIGNATURE_TOLERANCE_SEC = 300;

export const webhookBody = z.object({
  operationId: z.string(),
  account: z.union([z.string(), z.number()]).transform(String),
  /** Number of readings in the request. */
  received: z.number().int(),
  /** Number of readings stored by this operation, replaced ones included. */
  stored: z.number().int(),
  /** Number of stored readings that replaced an earlier value or version. */
  replaced: z.number().int(),
  discarded: z.array(z.object({ target: z.string(), reason: z.string(), count: z.number().int() })),
  /** Notices about stored readings, each given once; absent: none. */
  notices: z.array(z.string()).optional(),
  started: z.string(),
  finished: z.string(),
  /** The file that the readings came from; absent: they came by POST /api/data. */
  file: pushOrigin.optional(),
});
export type WebhookBody = z.infer<typeof webhookBody>;

/** The answer of GET /operations/{id}, as far as it is read here; without an outcome while that is awaited. */
export const serviceOperation = z.object({
  operationId: z.string(),
  status: z.string(),
  ...webhookBody.pick({ stored: true, replaced: true, discarded: true, file: true }).partial().shape,
});
export type ServiceOperation = z.infer<typeof serviceOperation>;

/** GET /account/webhookKey: an extension of Headgate. */
export const webhookKey = z.object({
  account: z.number().int(),
  key: z.string().describe("Key of the signature of the account's webhooks: `webhook.secret` of a gateway."),
});

/** The key that signs the webhooks of one account; the receivers of another one cannot find it. */
export function accountWebhookKey(secret: string, accountId: number): string {
  return createHmac("sha256", secret).update(`webhooks of account ${accountId}`).digest("base64url");
}

export function signWebhook(body: string, secret: string, unixSeconds: number): string {
  return `t=${unixSeconds},v1=${hmac(body, secret, unixSeconds)}`;
}

/** Null when the signature is valid, otherwise the reason. */
export function verifyWebhook(
  body: string,
  secret: string,
  header: string | undefined,
  nowSeconds: number,
): string | null {
  const match = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? "");
  if (match?.[1] === undefined || match[2] === undefined) return "the signature header is missing or malformed";
  if (Math.abs(nowSeconds - Number(match[1])) > SIGNATURE_TOLERANCE_SEC)
    return "the signature is too old or from the future";
  const expected = Buffer.from(hmac(body, secret, Number(match[1])), "hex");
  return timingSafeEqual(expected, Buffer.from(match[2], "hex")) ? null : "the signature does not match";
}

function hmac(body: string, secret: string, unixSeconds: number): string {
  return createHmac("sha256", secret).update(`${unixSeconds}.${body}`).digest("hex");
}
