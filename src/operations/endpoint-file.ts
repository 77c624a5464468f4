/**
 * How commands reach the daemon that owns a ledger: it writes its address and a secret into a file, where only its own user
 * can read them. So who may write the ledger may order, and nobody else: not a neighbour on the network, nor a page in a browser.
 */
import { randomBytes } from "node:crypto";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { z } from "zod";
import { systemCode } from "../support/errors.ts";
import { startFault } from "../support/start-fault.ts";

const sign = z.object({ url: z.string(), secret: z.string(), pid: z.number() });
export type EndpointFile = z.output<typeof sign>;

const OWNER_ONLY = 0o600;

/** Beside the ledger that it alone owns, or beside its spool when it shares the ledger with other nodes. */
export function endpointFilePath(config: {
  readonly ledger: { readonly kind: "sqlite"; readonly path: string } | { readonly kind: "postgres" };
  readonly spool: { readonly path: string };
}): string {
  return `${config.ledger.kind === "sqlite" ? config.ledger.path : config.spool.path}.daemon`;
}

export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Answers how to take it down. */
export async function hangSign(path: string, facts: Omit<EndpointFile, "pid">): Promise<() => Promise<void>> {
  try {
    await rm(path, { force: true });
    await writeFile(path, JSON.stringify({ ...facts, pid: process.pid }), { mode: OWNER_ONLY, flag: "wx" });
    await chmod(path, OWNER_ONLY);
  } catch (cause) {
    throw startFault("HG-LEDG-002", { operation: "tell where commands go", subject: path, cause });
  }
  return () => rm(path, { force: true });
}

/** Null when there is none, or one that cannot be read by this user. */
export async function readSign(path: string): Promise<EndpointFile | null> {
  try {
    return sign.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (thrown) {
    if (systemCode(thrown) !== undefined || thrown instanceof SyntaxError || thrown instanceof z.ZodError)
      return null;
    throw thrown;
  }
}
