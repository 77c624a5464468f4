/** Links that sign in once, for a console without users on loopback: the one who can read the log or the ledger may. */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../support/clock.ts";
import { hashOfCookie } from "../../support/pages/browser.ts";
import type { Person } from "../api/endpoint.ts";

/** Milliseconds for which a link can be used. */
const LINK_MS = 3_600_000;
const LINKS_MAX = 100;

export interface OneTimeLinks {
  /** The code of a link that signs in as an operator of this name. */
  make(name: string): { readonly code: string; readonly expiresAt: Temporal.Instant };
  /** Null for a code that was used, is too old, or never was. */
  use(code: string): Person | null;
}

export function createLinks(clock: Clock): OneTimeLinks {
  const links = new Map<string, { readonly name: string; readonly untilMs: number }>();
  return {
    make(name) {
      const [oldest] = links.keys();
      if (links.size >= LINKS_MAX && oldest !== undefined) links.delete(oldest);
      const code = randomBytes(32).toString("base64url");
      links.set(hashOfCookie(code), { name, untilMs: clock.monotonicMs() + LINK_MS });
      return { code, expiresAt: clock.now().add({ milliseconds: LINK_MS }) };
    },
    use(code) {
      const key = hashOfCookie(code);
      const link = links.get(key);
      links.delete(key);
      return link === undefined || clock.monotonicMs() >= link.untilMs ? null : { name: link.name, role: "operator" };
    },
  };
}
