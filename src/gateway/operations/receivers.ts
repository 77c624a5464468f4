/**
 * The receivers of notifications: webhooks and mail. A receiver responds within a time limit, and does not delay
 * other work.
 */
import type { Clock } from "#core/clock.ts";
import { TransientError, wordsOf } from "#core/errors.ts";
import { masked } from "#core/secrets.ts";
import { sendBySmtp } from "#core/smtp/transport.ts";
import { SIGNATURE_HEADER, signWebhook } from "#wire/webhook.ts";
import { bodyOf, linesOf, type Notification, oneLine, titleOf } from "./notification-text.ts";
import type { EmailReceiverOptions, ReceiverOptions, WebhookReceiverOptions } from "./options.ts";

export interface Receiver {
  readonly name: string;
  readonly about: ReadonlySet<string>;
  /** The address without secrets, for people. */
  readonly place: string;
  /** Resolves when the message was accepted; rejects with `TransientError`, whose message holds no secret. */
  send(notification: Notification): Promise<Sent>;
}

interface Sent {
  /** The response, for people. */
  readonly words: string;
  /** Some of the recipients were refused. */
  readonly isPartial: boolean;
}

const TIMEOUT_MS = 10_000;

export function createReceiver(options: ReceiverOptions, clock: Clock): Receiver {
  const place =
    options.kind === "webhook" ? `webhook at ${new URL(options.url).host}` : `mail by ${options.host}:${options.port}`;
  const send = options.kind === "webhook" ? webhookSender(options, clock) : emailSender(options);
  const secrets = secretsIn(options);
  return {
    name: options.name,
    about: new Set(options.about),
    place,
    async send(notification) {
      try {
        return await send(notification);
      } catch (cause) {
        let words = wordsOf(cause);
        for (const secret of secrets) words = words.replaceAll(secret, "[redacted]");
        // The cause is left out: it may hold secrets, and a log would write it.
        throw new TransientError("HG-OPS-001", {
          operation: "send notification",
          subject: options.name,
          message: `the receiver ${options.name} (${place}) did not accept the notification: ${oneLine(words)}`,
        });
      }
    },
  };
}

function secretsIn(options: ReceiverOptions): readonly string[] {
  const all = options.kind === "webhook" ? [options.url, options.secret] : [options.password];
  return all.filter((secret) => secret !== undefined);
}

function webhookSender({ url, format, secret }: WebhookReceiverOptions, clock: Clock) {
  return async (notification: Notification): Promise<Sent> => {
    const body = masked(bodyOf(notification, format));
    const seconds = Math.floor(clock.now().epochMilliseconds / 1000);
    const signature = secret === undefined ? {} : { [SIGNATURE_HEADER]: signWebhook(body, secret, seconds) };
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...signature },
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    return { words: `it answered ${answer.status}`, isPartial: false };
  };
}

function emailSender(options: EmailReceiverOptions) {
  const { from, to } = options;
  return async (notification: Notification): Promise<Sent> => {
    const { accepted, rejected } = await sendBySmtp(options, {
      from,
      to: [...to],
      subject: oneLine(titleOf(notification)),
      text: `${titleOf(notification)}\n\n${linesOf(notification).join("\n")}\n\n${notification.at}\n`,
    });
    const refused = rejected.length === 0 ? "" : `, which refused ${rejected.join(", ")}`;
    const words = `the server took it for ${accepted.length} of ${to.length} recipients${refused}`;
    return { words, isPartial: rejected.length > 0 };
  };
}
