/** Errors of the connection to an SFTP server. */
import { ConfigError, HeadgateError, TransientError, wordsOf } from "#core/errors.ts";
import type { SftpOptions } from "../options.ts";
import { isTrusted } from "./host-keys.ts";
import type { HostKeys } from "./known-hosts.ts";

/** `presented` is the fingerprint of the server, empty when the connection failed before. */
export function connectFailure(
  options: SftpOptions,
  thrown: unknown,
  keys: HostKeys | null,
  presented: string,
): unknown {
  if (thrown instanceof HeadgateError) return thrown;
  const server = `${options.host}:${options.port}`;
  const facts = { operation: "connect to SFTP server", subject: options.name, cause: thrown };
  if (presented !== "" && keys?.revoked.has(presented))
    return new ConfigError("HG-DROP-004", {
      ...facts,
      message:
        `the server ${server} of drop ${options.name} presents the host key ${presented}, ` +
        `which ${options.knownHosts} revokes; nothing was sent`,
      hint: "An attacker with a stolen key may be responding. Ask the server's owner.",
    });
  if (presented !== "" && keys !== null && !isTrusted(keys, presented)) {
    const known = [...keys.allowed];
    const authorities = keys.authorities === 0 ? "" : `; @cert-authority in ${options.knownHosts} is not understood`;
    const pinned = (known.length === 0 ? "none is pinned" : `pinned: ${known.join(", ")}`) + authorities;
    return new ConfigError("HG-DROP-004", {
      ...facts,
      message:
        `the server ${server} of drop ${options.name} presents the host key ${presented}, ` +
        `which is not pinned (${pinned}); nothing was sent`,
      hint:
        "Compare it with the fingerprint from the server's owner. If it is right, approve it in the console, or " +
        `add under hostKeys of this drop: - "${presented}"`,
    });
  }
  const level = thrown instanceof Error && "level" in thrown ? thrown.level : undefined;
  if (level === "client-authentication")
    return new ConfigError("HG-DROP-003", {
      ...facts,
      message: `the server ${server} of drop ${options.name} refuses the login of ${options.username}`,
    });
  if (wordsOf(thrown).startsWith("Cannot parse privateKey"))
    return new ConfigError("HG-DROP-003", {
      ...facts,
      message: `the private key of drop ${options.name} cannot be read: ${wordsOf(thrown)}`,
      hint: "Give the whole text of the key, and its passphrase when it has one.",
    });
  return unreachable(options, thrown);
}

export function unreachable(options: SftpOptions, thrown: unknown): TransientError {
  return new TransientError("HG-DROP-001", {
    operation: "connect to SFTP server",
    subject: options.name,
    message:
      `the SFTP server ${options.host}:${options.port} of drop ${options.name} cannot be reached: ` +
      `${wordsOf(thrown)}`,
    cause: thrown,
  });
}
