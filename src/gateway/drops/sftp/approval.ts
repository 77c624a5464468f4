/** Shows the host key that a server presents beside the trusted ones, and adds it to them by a person's command. */
import { readFile } from "node:fs/promises";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, RejectedError, unlessMissing } from "#core/errors.ts";
import { Turns } from "#core/turns.ts";
import type { SftpOptions } from "../options.ts";
import { interrupted } from "../refusals.ts";
import { connectFailure } from "./connect-failure.ts";
import { algorithmsOf } from "./connection.ts";
import { hostKeysOf, isTrusted, type TrustedKeys, trustedBy, typeOfKey } from "./host-keys.ts";
import { fingerprintOf, nameOfHost } from "./known-hosts.ts";

export interface KnownKey {
  /** Such as `ssh-ed25519`; null for a pin, which names only the fingerprint. */
  readonly type: string | null;
  readonly fingerprint: string;
  /** Where it stands, such as `line 3 of /etc/ssh/ssh_known_hosts`. */
  readonly trustedBy: string;
}

export interface OfferedKey {
  readonly type: string;
  readonly fingerprint: string;
  readonly isTrusted: boolean;
  /** The drop's file forbids it. */
  readonly isRevoked: boolean;
}

export interface HostKeyState {
  readonly known: readonly KnownKey[];
  readonly offered: OfferedKey;
}

/** Asks the server for its key, and sends it nothing else. Throws `TransientError` when it cannot be reached. */
export async function hostKeyState(options: SftpOptions, signal: AbortSignal): Promise<HostKeyState> {
  const keys = await hostKeysOf(options);
  return stateOf(options, keys, await presentedKey(options, keys, signal));
}

/** Approvals of drops that share a file. */
const turns = new Turns();

export interface Approval {
  readonly fingerprint: string;
  readonly by: string;
  readonly at: string;
  /** Keeps the lines for the other nodes, which give them to `addApproved`. */
  keep(lines: string): Promise<void>;
}

/**
 * Trusts the key of this fingerprint from the next connection on. Throws `RejectedError` when the server presents
 * another key now, and when the drop's file revokes it.
 */
export async function approveHostKey(
  options: SftpOptions,
  { fingerprint, by, at, keep }: Approval,
  signal: AbortSignal,
): Promise<HostKeyState> {
  const facts = { operation: "approve host key", subject: options.name };
  const { approvedHosts } = options;
  if (approvedHosts === undefined)
    throw new ConfigError("HG-DROP-004", {
      ...facts,
      message: `the drop ${options.name} has no file for approved keys`,
      hint: "Name one in its `approvedHosts`, or pin the fingerprint in `hostKeys`.",
    });
  const keys = await hostKeysOf(options);
  const key = await presentedKey(options, keys, signal);
  const state = stateOf(options, keys, key);
  if (state.offered.fingerprint !== fingerprint)
    throw new RejectedError("HG-DROP-004", {
      ...facts,
      message: `the server presents ${state.offered.fingerprint} now, and not the approved key ${fingerprint}`,
      hint: "Compare the new key with the fingerprint from the server's owner before you approve it.",
    });
  if (state.offered.isRevoked)
    throw new RejectedError("HG-DROP-004", {
      ...facts,
      message: `${options.knownHosts} revokes the key ${fingerprint}`,
      hint: "An attacker with a stolen key may be responding. Ask the server's owner.",
    });
  if (!state.offered.isTrusted) {
    const { type } = state.offered;
    // A name may hold anything; a line break would begin another entry.
    const where = `for the drop ${JSON.stringify(options.name)}: ${fingerprint}`;
    const note = `# approved by ${JSON.stringify(by)} at ${at}, ${where}`;
    const entry = `${nameOfHost(options.host, options.port)} ${type} ${key.toString("base64")}`;
    const lines = `${note}\n${entry}\n`;
    // First the own file: where it cannot be written, no other node receives the approval either.
    await addApproved(approvedHosts, lines);
    await keep(lines);
  }
  return stateOf(options, await hostKeysOf(options), key);
}

/**
 * Adds the lines of an approval to the file of approved keys, once: a person who removes the entry and leaves its
 * comment withdraws the key. Returns whether they were added.
 */
export async function addApproved(path: string, lines: string): Promise<boolean> {
  const [note = ""] = lines.split("\n", 1);
  const turn = turns.enter();
  try {
    await turn.mine;
    const before = await unlessMissing(readFile(path, "utf8"), "");
    if (before.split(/\r?\n/).includes(note)) return false;
    await writeDurably(path, `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}${lines}`);
    return true;
  } finally {
    turn.pass();
  }
}

/** Whether the lines of an approval are a comment and one entry, of the server of this drop. */
export function isApprovalOf({ host, port }: Pick<SftpOptions, "host" | "port">, lines: string): boolean {
  const [note = "", entry = "", ...rest] = lines.split("\n");
  const [name, type, key, ...more] = entry.split(" ");
  const isEntry = name === nameOfHost(host, port) && type !== undefined && key !== undefined && more.length === 0;
  return note.startsWith("# ") && isEntry && rest.length === 1 && rest[0] === "";
}

function stateOf(options: SftpOptions, keys: TrustedKeys, key: Buffer): HostKeyState {
  const fingerprint = fingerprintOf(key);
  return {
    known: [...keys.allowed].map((one) => ({
      type: keys.typeOf.get(one) ?? null,
      fingerprint: one,
      trustedBy: trustedBy(options, keys, one),
    })),
    offered: {
      type: typeOfKey(key),
      fingerprint,
      isTrusted: isTrusted(keys, fingerprint),
      isRevoked: keys.revoked.has(fingerprint),
    },
  };
}

/** The key in its wire form, of the type that a connection of the drop would get. */
async function presentedKey(options: SftpOptions, keys: TrustedKeys, signal: AbortSignal): Promise<Buffer> {
  const { default: ssh2 } = await import("ssh2"); // Loaded on first use, since the module is large.
  const client = new ssh2.Client();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stop = (error: unknown) => reject(connectFailure(options, error, null, ""));
  const abort = () => reject(interrupted(options.name, "read host key", signal.reason));
  client.on("error", stop);
  client.on("close", () => stop(new Error("the connection was closed before the server named its key")));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    client.connect({
      host: options.host,
      port: options.port,
      username: options.username,
      readyTimeout: options.timeouts.connect,
      algorithms: algorithmsOf(options, keys),
      hostVerifier(key: Buffer) {
        resolve(Buffer.from(key));
        return false; // The login is never reached.
      },
    });
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    client.destroy();
  }
}
