/** Sends bodies to receivers outside of the hub: signed, within the rules of whom the hub may reach. */
import { request } from "undici";
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import { SIGNATURE_HEADER, signWebhook } from "#wire/index.ts";
import type { HubOptions } from "../options.ts";
import { createReceivers, type LookUpAll, reachOf } from "./receivers.ts";

export interface Sending {
  readonly url: string;
  /** JSON. */
  readonly text: string;
  /** Key of the signature; undefined: none. */
  readonly secret: string | undefined;
}

/** `words` name details of the hub's network, and are for its log alone. */
export type Answer =
  | { readonly kind: "accepted"; readonly status: number }
  | { readonly kind: "refused"; readonly status: number; readonly words: string }
  | { readonly kind: "unreached"; readonly words: string };

export interface Sender {
  /** Never throws. Aborted by `close`. */
  send(sending: Sending): Promise<Answer>;
  close(): Promise<void>;
}

export interface SenderParts {
  readonly clock: Clock;
  /** Resolver for names of receivers; the system's when absent. */
  readonly lookUpAll?: LookUpAll | undefined;
}

/** A status of 2xx accepts. Redirects are not followed. */
export function createSender(
  { hosts, timeout }: Pick<HubOptions["webhook"], "hosts" | "timeout">,
  { clock, lookUpAll }: SenderParts,
): Sender {
  const closing = new AbortController();
  const receivers = createReceivers(lookUpAll);
  return {
    async send({ url, text, secret }) {
      const target = URL.parse(url);
      const reach = target === null ? "refused" : reachOf(target, hosts);
      if (reach === "refused") return { kind: "unreached", words: "the host is neither public nor in webhook.hosts" };
      const seconds = Math.floor(clock.now().epochMilliseconds / 1_000);
      const signature = secret === undefined ? {} : { [SIGNATURE_HEADER]: signWebhook(text, secret, seconds) };
      try {
        const response = await request(url, {
          dispatcher: receivers.agentFor(reach),
          method: "POST",
          headers: { "content-type": "application/json", ...signature },
          body: text,
          signal: AbortSignal.any([AbortSignal.timeout(timeout), closing.signal]),
        });
        const status = response.statusCode;
        await response.body.dump();
        if (status >= 200 && status < 300) return { kind: "accepted", status };
        return { kind: "refused", status, words: `answered by ${status}` };
      } catch (thrown) {
        return { kind: "unreached", words: wordsOf(thrown) };
      }
    },
    async close() {
      closing.abort();
      await receivers.close();
    },
  };
}
