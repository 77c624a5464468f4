/**
 * Links that sign in once, for a console without users on loopback: the one who can read the log or the ledger may.
 * Their codes are kept as hashes, in a file that only the gateway's user can read, so that a restart leaves them valid.
 */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { z } from "zod";
import type { Clock } from "#core/clock.ts";
import { systemCode } from "#core/errors.ts";
import { hashOfCookie } from "#core/pages/browser.ts";
import { PRIVATE_FILE } from "#core/private-files.ts";
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

const link = z.object({ name: z.string(), untilMs: z.number() });
/** By the hash of the code, oldest first. */
const keptLinks = z.array(z.tuple([z.string(), link]));
type Links = Map<string, z.output<typeof link>>;

export function createLinks(clock: Clock, path: string): OneTimeLinks {
  const links = readLinks(path);
  const nowMs = () => clock.now().epochMilliseconds;
  return {
    make(name) {
      const [oldest] = links.keys();
      if (links.size >= LINKS_MAX && oldest !== undefined) links.delete(oldest);
      const code = randomBytes(32).toString("base64url");
      const untilMs = nowMs() + LINK_MS;
      links.set(hashOfCookie(code), { name, untilMs });
      saveLinks(path, links);
      return { code, expiresAt: Temporal.Instant.fromEpochMilliseconds(untilMs) };
    },
    use(code) {
      const key = hashOfCookie(code);
      const found = links.get(key);
      if (found === undefined) return null;
      links.delete(key);
      saveLinks(path, links);
      const leftMs = found.untilMs - nowMs();
      // A clock that was set back would keep a link for longer.
      return leftMs <= 0 || leftMs > LINK_MS ? null : { name: found.name, role: "operator" };
    },
  };
}

/** None where the file is missing or damaged: the command makes another link. */
function readLinks(path: string): Links {
  try {
    return new Map(keptLinks.parse(JSON.parse(readFileSync(path, "utf8"))));
  } catch (thrown) {
    if (systemCode(thrown) !== undefined || thrown instanceof SyntaxError || thrown instanceof z.ZodError)
      return new Map();
    throw thrown;
  }
}

/** Durable before a use signs in. On a full disk the file is removed, lest a used link works again. */
function saveLinks(path: string, links: Links): void {
  const temporary = `${path}.part`;
  try {
    const file = openSync(temporary, "w", PRIVATE_FILE);
    try {
      writeSync(file, JSON.stringify([...links]));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    for (const one of [temporary, path]) rmSync(one, { force: true });
  }
}
