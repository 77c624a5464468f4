/**
 * Carries commands to the daemon that owns a ledger: the daemon writes its address and a secret into a file that only
 * its own user can read. A user who can write the ledger can therefore send commands; a neighbour on the network or a
 * page in a browser cannot.
 */
import { randomBytes } from "node:crypto";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { z } from "zod";
import { systemCode } from "#core/errors.ts";
import { startFault } from "#core/start-fault.ts";

const endpoint = z.object({ url: z.string(), secret: z.string(), pid: z.number() });
export type EndpointFile = z.output<typeof endpoint>;

const OWNER_ONLY = 0o600;

/**
 * The file is beside the ledger that the daemon alone owns, or beside its spool when it shares the ledger with other
 * nodes (`ledgerFile` null).
 */
export function endpointFilePath(ledgerFile: string | null, spool: { readonly path: string }): string {
  return `${ledgerFile ?? spool.path}.daemon`;
}

/** Where the links to the console are kept, beside the endpoint file. */
export function linksFilePath(ledgerFile: string | null, spool: { readonly path: string }): string {
  return `${ledgerFile ?? spool.path}.links`;
}

export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Returns a function that removes the file. */
export async function writeEndpointFile(path: string, facts: Omit<EndpointFile, "pid">): Promise<() => Promise<void>> {
  try {
    await rm(path, { force: true });
    await writeFile(path, JSON.stringify({ ...facts, pid: process.pid }), { mode: OWNER_ONLY, flag: "wx" });
    await chmod(path, OWNER_ONLY);
  } catch (cause) {
    throw startFault("HG-LEDG-002", { operation: "write the endpoint file", subject: path, cause });
  }
  return () => rm(path, { force: true });
}

/** Null when there is no file, or none that this user can read. */
export async function readEndpointFile(path: string): Promise<EndpointFile | null> {
  try {
    return endpoint.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (thrown) {
    if (systemCode(thrown) !== undefined || thrown instanceof SyntaxError || thrown instanceof z.ZodError) return null;
    throw thrown;
  }
}
