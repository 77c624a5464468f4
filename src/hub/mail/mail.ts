/** Mails of the hub for other parts: whether they can be sent, and the links that they carry. */

import { hash, randomBytes } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { randomDigits } from "#core/random.ts";
import type { HubOptions } from "../options.ts";
import type { HubStore } from "../store/store.ts";
import { createCarrier } from "./carrier.ts";
import { startDelivery } from "./delivery.ts";

export interface HubMail {
  /** False: there is neither a server nor a folder for mails, which then are not written at all (`NO_MAIL`). */
  readonly isSetUp: boolean;
  readonly validity: HubOptions["mail"]["validity"];
  /** After a transaction that queued a mail. */
  wake(): void;
  /**
   * The address of a page of this hub, with the token of a link. Never derived from a request, whose caller chooses
   * the name of the host.
   */
  linkTo(path: string, token?: string): string;
  /** Where the hub listens, known after the start. */
  listensAt(url: string): void;
  close(): Promise<void>;
}

const TOKEN_BYTES = 32;
/** Without letters and digits that look alike. */
const LEGIBLE = "abcdefghijkmnpqrstuvwxyz23456789";
const GROUPS = 4;
const GROUP_LENGTH = 4;

/** The next step of an operator where it is not set up. */
export const NO_MAIL = "this hub sends no mails: set `mail.smtp`, or `mail.outbox` to a folder, in its configuration";

export function startMail(
  options: HubOptions,
  { mails }: Pick<HubStore, "mails">,
  parts: { readonly log: Logger; readonly clock: Clock },
): HubMail {
  const carrier = createCarrier(options);
  const delivery = carrier === null ? null : startDelivery({ mails, carrier, options: options.mail, ...parts });
  let base = options.publicUrl?.replace(/\/$/, "") ?? "";
  return {
    isSetUp: delivery !== null,
    validity: options.mail.validity,
    wake() {
      faultPoint("hub.mail.queued");
      delivery?.wake();
    },
    linkTo: (path, token) => `${base}${path}${token === undefined ? "" : `?token=${token}`}`,
    listensAt(url) {
      if (base === "") base = url;
    },
    close: async () => delivery?.close(),
  };
}

// Secrets that travel in mails.

interface LinkSecret {
  /** Part of the link; never stored. */
  readonly token: string;
  readonly hash: string;
}

export function newLinkSecret(): LinkSecret {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { token, hash: hashOfToken(token) };
}

/** The token is random and long, so that a fast hash without a salt is safe. */
export function hashOfToken(token: string): string {
  return hash("sha256", token, "base64url");
}

/** Of 80 bits, and easy to type: `kq3m-x7pa-…`. */
export function temporaryPassword(): string {
  return Array.from({ length: GROUPS }, () => randomDigits(GROUP_LENGTH, LEGIBLE)).join("-");
}
