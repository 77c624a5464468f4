import type { Database } from "../database.ts";
import { createInvitationStore, type InvitationStore } from "./invitations.ts";
import { createLinkStore, type LinkStore } from "./links.ts";
import { createMailStore, type MailStore } from "./mails.ts";

export interface MailStores {
  readonly mails: MailStore;
  readonly links: LinkStore;
  readonly invitations: InvitationStore;
}

export function createMailStores(database: Database): MailStores {
  return {
    mails: createMailStore(database),
    links: createLinkStore(database),
    invitations: createInvitationStore(database),
  };
}
