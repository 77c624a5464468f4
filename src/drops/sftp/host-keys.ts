/** The host keys that an SFTP drop trusts: its pins, and those of its known_hosts file. */
import { readFile } from "node:fs/promises";
import { ConfigError, wordsOf } from "../../support/errors.ts";
import type { SftpOptions } from "../options.ts";
import { type HostKeys, readKnownHosts } from "./known-hosts.ts";

/** The keys of the pins and of the file. */
export async function hostKeysOf(options: SftpOptions): Promise<HostKeys> {
  if (options.knownHosts === undefined)
    return {
      allowed: new Set(options.hostKeys),
      revoked: new Set(),
      types: [],
      authorities: 0,
      lines: new Map(),
    };
  try {
    const text = await readFile(options.knownHosts, "utf8");
    const keys = readKnownHosts(text, options.host, options.port);
    return { ...keys, allowed: new Set([...options.hostKeys, ...keys.allowed]) };
  } catch (cause) {
    throw new ConfigError("HG-DROP-004", {
      operation: "read known hosts",
      subject: options.name,
      message: `the file ${options.knownHosts} of drop ${options.name} cannot be read: ${wordsOf(cause)}`,
      hint: "Correct the drop's `knownHosts`, or pin the fingerprint in `hostKeys`.",
      cause,
    });
  }
}

export function isTrusted(keys: HostKeys, presented: string): boolean {
  return keys.allowed.has(presented) && !keys.revoked.has(presented);
}

/** The reason why a key is trusted, in words. */
export function trustedBy(options: SftpOptions, keys: HostKeys, presented: string): string {
  const at = options.hostKeys.indexOf(presented);
  const line = keys.lines.get(presented);
  return [
    ...(at < 0 ? [] : [`pinned in hostKeys (${at + 1} of ${options.hostKeys.length})`]),
    ...(line === undefined ? [] : [`line ${line} of ${options.knownHosts}`]),
  ].join(", ");
}

/** Such as `ssh-ed25519`: a public key in its wire form begins with the name of its type (RFC 4253, section 6.6). */
export function typeOfKey(key: Buffer): string {
  return key.toString("latin1", 4, 4 + key.readUInt32BE(0));
}
