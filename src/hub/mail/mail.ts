/** Mails of the hub for other parts: whether they can be sent, and the links that they carry. */
import type { Clock } from "#core/clock.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import type { HubOptions } from "../options.ts";
import type { HubStore } from "../store/store.ts";
import { createCarrier } from "./carrier.ts";
import { startDelivery } from "./delivery.ts";

export { newLinkSecret } from "./link-secret.ts";
export { invitationMessage } from "./messages.ts";

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
