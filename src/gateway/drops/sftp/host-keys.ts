/**
 * The host keys that an SFTP drop trusts: its pins, those of its known_hosts file, and those that a person approved
 * while the gateway ran.
 */
import { readFile } from "node:fs/promises";
import { ConfigError, unlessMissing, wordsOf } from "#core/errors.ts";
import type { SftpOptions } from "../options.ts";
import { type HostKeys, readKnownHosts } from "./known-hosts.ts";

export interface TrustedKeys extends HostKeys {
  /** The part of `allowed` that a person approved. */
  readonly approved: HostKeys;
}

/** Read at each connection, so that an approval and an edited file take effect at the next one. */
export async function hostKeysOf(options: SftpOptions): Promise<TrustedKeys> {
  const { host, port, hostKeys, knownHosts, approvedHosts } = options;
  const file = readKnownHosts(knownHosts === undefined ? "" : await textOf(options, knownHosts), host, port);
  const written = approvedHosts === undefined ? "" : await textOf(options, approvedHosts, "");
  const approved = readKnownHosts(written, host, port);
  return {
    ...file,
    allowed: new Set([...hostKeys, ...file.allowed, ...approved.allowed]),
    types: [...new Set([...file.types, ...approved.types])],
    typeOf: new Map([...file.typeOf, ...approved.typeOf]),
    approved,
  };
}

/** `otherwise`: the text of a missing file, such as that of approved keys before the first approval. */
async function textOf(options: SftpOptions, path: string, otherwise?: string): Promise<string> {
  try {
    const text = readFile(path, "utf8");
    return otherwise === undefined ? await text : await unlessMissing(text, otherwise);
  } catch (cause) {
    const setting = path === options.knownHosts ? "knownHosts" : "approvedHosts";
    throw new ConfigError("HG-DROP-004", {
      operation: "read known hosts",
      subject: options.name,
      message: `the file ${path} of drop ${options.name} cannot be read: ${wordsOf(cause)}`,
      hint: `Correct the drop's \`${setting}\`, or pin the fingerprint in \`hostKeys\`.`,
      cause,
    });
  }
}

export function isTrusted(keys: HostKeys, presented: string): boolean {
  return keys.allowed.has(presented) && !keys.revoked.has(presented);
}

/** The reason why a key is trusted, in words; empty when nothing says so. */
export function trustedBy(options: SftpOptions, keys: TrustedKeys, presented: string): string {
  const at = options.hostKeys.indexOf(presented);
  const line = keys.lines.get(presented);
  const approvedLine = keys.approved.lines.get(presented);
  return [
    ...(at < 0 ? [] : [`pinned in hostKeys (${at + 1} of ${options.hostKeys.length})`]),
    ...(line === undefined ? [] : [`line ${line} of ${options.knownHosts}`]),
    ...(approvedLine === undefined ? [] : [`approved in line ${approvedLine} of ${options.approvedHosts}`]),
  ].join(", ");
}

/** Such as `ssh-ed25519`: a public key in its wire form begins with the name of its type (RFC 4253, section 6.6). */
export function typeOfKey(key: Buffer): string {
  return key.toString("latin1", 4, 4 + key.readUInt32BE(0));
}
