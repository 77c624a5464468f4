/** Host keys in OpenSSH's format (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */
import { createHash, createHmac } from "node:crypto";

export interface HostKeys {
  /** `SHA256:` fingerprints that the file permits for the host. */
  readonly allowed: ReadonlySet<string>;
  /** Fingerprints that must never be accepted. */
  readonly revoked: ReadonlySet<string>;
  /** Types of the permitted keys, such as `ssh-ed25519`, which are requested first. */
  readonly types: readonly string[];
  /** Lines of @cert-authority for the host, which are not understood. */
  readonly authorities: number;
  /** Type of the key with a fingerprint. */
  readonly typeOf: ReadonlyMap<string, string>;
  /** Number of the line that permits a fingerprint, from 1. */
  readonly lines: ReadonlyMap<string, number>;
}

export function readKnownHosts(text: string, host: string, port: number): HostKeys {
  const allowed = new Set<string>();
  const revoked = new Set<string>();
  const types = new Set<string>();
  const typeOf = new Map<string, string>();
  const lines = new Map<string, number>();
  let authorities = 0;
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    const fields = line.trim().split(/\s+/);
    const marker = fields[0]?.startsWith("@") ? fields.shift() : undefined;
    const [names, type, key] = fields;
    if (names === undefined || names.startsWith("#") || type === undefined || key === undefined) continue;
    if (!namesHost(names, host, port)) continue;
    if (marker === "@cert-authority") authorities += 1;
    else if (marker === "@revoked") revoked.add(fingerprintOf(Buffer.from(key, "base64")));
    else if (marker === undefined) {
      const fingerprint = fingerprintOf(Buffer.from(key, "base64"));
      allowed.add(fingerprint);
      types.add(type);
      typeOf.set(fingerprint, type);
      if (!lines.has(fingerprint)) lines.set(fingerprint, at + 1);
    }
  }
  return { allowed, revoked, types: [...types], authorities, typeOf, lines };
}

/** `SHA256:` and the digest of a public key in its wire form. */
export function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
}

/** A port other than 22 is part of the name, in brackets. */
export function nameOfHost(host: string, port: number): string {
  return port === 22 ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`;
}

function namesHost(names: string, host: string, port: number): boolean {
  const wanted = nameOfHost(host, port);
  if (names.startsWith("|1|")) {
    const [, , salt = "", digest = ""] = names.split("|");
    return createHmac("sha1", Buffer.from(salt, "base64")).update(wanted).digest("base64") === digest;
  }
  const patterns = names.toLowerCase().split(",");
  const matches = (pattern: string) => patternOf(pattern).test(wanted);
  if (patterns.some((pattern) => pattern.startsWith("!") && matches(pattern.slice(1)))) return false;
  return patterns.some((pattern) => !pattern.startsWith("!") && matches(pattern));
}

function patternOf(pattern: string): RegExp {
  const parts = pattern.split(/([*?])/).map((part) => {
    if (part === "*") return ".*";
    return part === "?" ? "." : RegExp.escape(part);
  });
  return new RegExp(`^${parts.join("")}$`);
}
