import type { Database } from "../database.ts";
import { createLinkStore, type LinkStore } from "./links.ts";
import { createMailStore, type MailStore } from "./mails.ts";

export interface MailStores {
  readonly mails: MailStore;
  readonly links: LinkStore;
}

export function createMailStores(database: Database): MailStores {
  return { mails: createMailStore(database), links: createLinkStore(database) };
}
