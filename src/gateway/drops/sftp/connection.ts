/**
 * The one SSH connection of an SFTP drop, with a few SFTP channels on it; opened at the first call, and again
 * after it broke.
 */
import type { Client, ConnectConfig, SFTPWrapper } from "ssh2";
import { bytesOf, type NameEncoding, nameOf } from "#core/file-names.ts";
import type { SftpOptions } from "../options.ts";
import { interrupted } from "../refusals.ts";
import { connectFailure, unreachable } from "./connect-failure.ts";
import { hostKeysOf, isTrusted, trustedBy, typeOfKey } from "./host-keys.ts";
import { fingerprintOf, type HostKeys } from "./known-hosts.ts";

type Answer<T> = (error: Error | null | undefined, value: T) => void;

interface Channel {
  readonly sftp: SFTPWrapper;
  users: number;
}

/** The server's software and extensions. */
export interface SftpServer {
  /** Such as `OpenSSH_9.2p1`; empty when unknown. */
  readonly software: string;
  /** Names of the protocol extensions that it offers. */
  readonly extensions: readonly string[];
  readonly hostKey: { readonly type: string; readonly fingerprint: string; readonly trustedBy: string };
}

/** An established connection. */
interface Link {
  readonly client: Client;
  hostKey: SftpServer["hostKey"];
  /** Rejects when the connection ends; never resolves. */
  readonly ended: Promise<never>;
  readonly channels: Channel[];
  /** Channels that are being opened. */
  readonly opening: Set<Promise<Channel>>;
  alive: boolean;
  /** Milliseconds of the monotonic clock at the server's last response. */
  answeredAt: number;
}

/** Length and type of a packet. */
const HEAD_BYTES = 5;
/** The type of a response with names. */
const NAME = 104;
/** A longer packet is not collected; ssh2 refuses it. */
const NAME_BYTES_MAX = 256 * 1024;
/**
 * Requests that begin with a path: open, lstat, setstat, opendir, remove, mkdir, rmdir, realpath, stat,
 * readlink; rename has two.
 */
const WITH_PATH = new Set([3, 7, 9, 11, 13, 14, 15, 16, 17, 19]);
const RENAME = 18;
/** Offset of the path in a request, after length, type and id. */
const PATH_AT = 9;

export class SftpConnection {
  readonly #options: SftpOptions;
  #link: Promise<Link> | null = null;
  /** The client that is connecting now, so that closing need not wait for it. */
  #opening: Client | null = null;
  #users = 0;
  #idleTimer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: SftpOptions) {
    this.#options = options;
  }

  /**
   * Runs some work on a channel. An aborted signal or a closed connection ends its calls with
   * `TransientError`.
   */
  async use<T>(signal: AbortSignal, work: (calls: SftpCalls) => Promise<T>): Promise<T> {
    const name = this.#options.name;
    if (this.#closed || signal.aborted) throw interrupted(name, "use SFTP connection", signal.reason);
    this.#users += 1;
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    try {
      const link = await this.#connected(signal);
      const channel = await this.#channel(link, signal);
      channel.users += 1;
      try {
        return await work(new SftpCalls(this.#options, link, channel.sftp, signal));
      } finally {
        channel.users -= 1;
      }
    } finally {
      this.#users -= 1;
      if (this.#users === 0) this.#closeWhenIdle();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
  }

  async #drop(): Promise<void> {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const opening = this.#link;
    this.#link = null;
    this.#opening?.destroy();
    const link = await opening?.catch(() => null); // A connection that failed has nothing to close.
    if (!link?.alive) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    link.client.once("close", resolve);
    link.client.end();
    const timer = setTimeout(() => link.client.destroy(), 500);
    await promise;
    clearTimeout(timer);
  }

  #closeWhenIdle(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => void this.#drop(), this.#options.timeouts.idle);
    this.#idleTimer.unref();
  }

  async #connected(signal: AbortSignal): Promise<Link> {
    const link = this.#link ?? this.#open();
    this.#link = link;
    try {
      const opened = await untilAborted(this.#options, signal, link);
      if (opened.alive) return opened;
    } catch (thrown) {
      if (this.#link === link && !signal.aborted) this.#link = null;
      throw thrown;
    }
    if (this.#link === link) this.#link = null;
    return this.#connected(signal);
  }

  async #open(): Promise<Link> {
    const options = this.#options;
    const { default: ssh2 } = await import("ssh2"); // Loaded on first use, since the module is large.
    const client = new ssh2.Client();
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    const { promise: ended, reject: end } = Promise.withResolvers<never>();
    ended.catch(() => undefined); // The calls in progress handle it.
    const link: Link = {
      client,
      hostKey: { type: "", fingerprint: "", trustedBy: "" },
      ended,
      channels: [],
      opening: new Set(),
      alive: true,
      answeredAt: performance.now(),
    };
    const keys = await hostKeysOf(options);
    if (this.#closed) throw interrupted(options.name, "connect to SFTP server");
    let presented = "";
    const stop = (error: unknown) => {
      link.alive = false;
      const failure = connectFailure(options, error, keys, presented);
      reject(failure);
      end(failure);
    };
    client.on("connect", () => client.setNoDelay(true)); // Small requests must not wait for each other.
    client.on("ready", resolve);
    client.on("error", stop);
    client.on("close", () => stop(new Error("the connection was closed")));
    client.on("keyboard-interactive", (_name, _instructions, _language, prompts, finish) =>
      finish(prompts.map(() => options.password ?? "")),
    );
    this.#opening = client;
    try {
      client.connect(
        connectConfig(options, keys, (key) => {
          presented = fingerprintOf(key);
          link.hostKey = {
            type: typeOfKey(key),
            fingerprint: presented,
            trustedBy: trustedBy(options, keys, presented),
          };
          return isTrusted(keys, presented);
        }),
      );
      await ready;
    } catch (thrown) {
      client.destroy();
      throw connectFailure(options, thrown, keys, presented);
    } finally {
      this.#opening = null;
    }
    return link;
  }

  /** The least used channel, or a new one while all are in use and the limit permits it. */
  async #channel(link: Link, signal: AbortSignal): Promise<Channel> {
    for (;;) {
      const least = link.channels.toSorted((one, other) => one.users - other.users)[0];
      const full = link.channels.length + link.opening.size >= this.#options.maxChannels;
      if (least !== undefined && (least.users === 0 || full)) return least;
      if (!full) return this.#openChannel(link, signal);
      // All permitted channels are being opened. Their callers handle the failures.
      await untilAborted(this.#options, signal, Promise.allSettled(link.opening));
    }
  }

  async #openChannel(link: Link, signal: AbortSignal): Promise<Channel> {
    const opening = new Promise<Channel>((resolve, reject) => {
      link.client.sftp((error, sftp) => {
        if (error !== undefined) return reject(error);
        readNamesAs(this.#options.names, sftp);
        const channel = { sftp, users: 0 };
        const forget = () => {
          const at = link.channels.indexOf(channel);
          if (at >= 0) link.channels.splice(at, 1);
        };
        sftp.on("close", forget);
        sftp.on("error", forget);
        link.channels.push(channel);
        resolve(channel);
      });
    });
    link.opening.add(opening);
    try {
      return await withDeadline(this.#options, "open SFTP channel", link, signal, opening);
    } catch (thrown) {
      // A server may permit fewer sessions than the limit; then the existing channels are shared.
      link.opening.delete(opening);
      await Promise.allSettled(link.opening);
      const other = link.channels.toSorted((one, next) => one.users - next.users)[0];
      if (other !== undefined && link.alive && !signal.aborted) return other;
      throw connectFailure(this.#options, thrown, null, "");
    } finally {
      link.opening.delete(opening);
    }
  }
}

/** SFTP requests as promises, each with the drop's deadline for silence. */
export class SftpCalls {
  readonly #options: SftpOptions;
  readonly #link: Link;
  readonly #sftp: SFTPWrapper;
  readonly #signal: AbortSignal;

  constructor(options: SftpOptions, link: Link, sftp: SFTPWrapper, signal: AbortSignal) {
    this.#options = options;
    this.#link = link;
    this.#sftp = sftp;
    this.#signal = signal;
  }

  get server(): SftpServer {
    // The library knows both and exposes neither.
    const software: unknown = Reflect.get(this.#link.client, "_remoteVer");
    const extensions: unknown = Reflect.get(this.#sftp, "_extensions");
    return {
      software: typeof software === "string" ? software : "",
      extensions: typeof extensions === "object" && extensions !== null ? Object.keys(extensions) : [],
      hostKey: this.#link.hostKey,
    };
  }

  call<T>(operation: string, request: (sftp: SFTPWrapper, answer: Answer<T>) => void): Promise<T> {
    const answered = new Promise<T>((resolve, reject) => {
      request(this.#sftp, (error, value) => (error ? reject(error) : resolve(value)));
    });
    return withDeadline(this.#options, operation, this.#link, this.#signal, answered);
  }
}

async function withDeadline<T>(
  options: SftpOptions,
  operation: string,
  link: Link,
  signal: AbortSignal,
  work: Promise<T>,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const askedAt = performance.now();
  // A slow line is not a dead one: only silence on the whole connection counts.
  const check = () => {
    const silentMs = performance.now() - Math.max(askedAt, link.answeredAt);
    if (silentMs < options.timeouts.data) {
      timer = setTimeout(check, options.timeouts.data - silentMs);
      return;
    }
    reject(unreachable(options, new Error(`no response within ${options.timeouts.data} ms (${operation})`)));
    link.alive = false;
    link.client.destroy(); // Half-open: the next call connects again.
  };
  let timer = setTimeout(check, options.timeouts.data);
  try {
    const value = await untilAborted(options, signal, Promise.race([work, late, link.ended]));
    link.answeredAt = performance.now();
    return value;
  } finally {
    clearTimeout(timer);
  }
}

async function untilAborted<T>(options: SftpOptions, signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(interrupted(options.name, "use SFTP connection", signal.reason));
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function connectConfig(options: SftpOptions, keys: HostKeys, verify: (key: Buffer) => boolean): ConnectConfig {
  return {
    host: options.host,
    port: options.port,
    username: options.username,
    ...(options.password === undefined ? {} : { password: options.password, tryKeyboard: true }),
    ...(options.privateKey === undefined ? {} : { privateKey: options.privateKey }),
    ...(options.passphrase === undefined ? {} : { passphrase: options.passphrase }),
    ...(options.agent === undefined ? {} : { agent: options.agent }),
    readyTimeout: options.timeouts.connect,
    keepaliveInterval: options.keepAlive,
    keepaliveCountMax: 3,
    hostVerifier: verify,
    algorithms: algorithmsOf(options, keys),
  };
}

const WEAK = { hostKey: ["ssh-rsa"], mac: ["hmac-sha1-etm@openssh.com", "hmac-sha1"] } as const;
const MODERN_HOST_KEYS = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "rsa-sha2-512",
  "rsa-sha2-256",
] as const;

/** A server has keys of several types; those in the file are requested first. */
export function algorithmsOf(options: SftpOptions, keys: HostKeys): NonNullable<ConnectConfig["algorithms"]> {
  const isKnown = (type: string) => keys.types.includes(type.startsWith("rsa-sha2-") ? "ssh-rsa" : type);
  const types = [...MODERN_HOST_KEYS.filter(isKnown), ...MODERN_HOST_KEYS.filter((type) => !isKnown(type))];
  if (options.algorithms === "modern")
    return { serverHostKey: types, hmac: { append: [], prepend: [], remove: [...WEAK.mac] } };
  return {
    serverHostKey: [...types, "ssh-rsa", "ssh-dss"],
    kex: {
      append: ["diffie-hellman-group14-sha1", "diffie-hellman-group-exchange-sha1", "diffie-hellman-group1-sha1"],
      prepend: [],
      remove: [],
    },
    cipher: { append: ["aes256-cbc", "aes192-cbc", "aes128-cbc", "3des-cbc"], prepend: [], remove: [] },
    hmac: { append: ["hmac-md5"], prepend: [], remove: [] },
  };
}

// File names on an SFTP channel. ssh2 decodes every name as UTF-8, and replaces invalid bytes by a character
// that names no file. So names are converted to UTF-8 before ssh2 reads a response, with escapes for bytes
// that are not text (`file-names.ts`), and paths to the bytes of the server before a request leaves. Packets:
// draft-ietf-secsh-filexfer-02, section 3.

/** For a client's channel that is open and idle. */
function readNamesAs(encoding: NameEncoding, sftp: SFTPWrapper): void {
  const { toText, toBytes } = recodersOf(encoding);
  recodePackets(sftp, {
    isIncoming: (type) => type === NAME,
    incoming: (packet) => recodeNames(packet, toText),
    outgoing: (packet) => recodePaths(packet, toBytes),
  });
}

/** The same for the channel of a server. */
export function serveNamesAs(encoding: NameEncoding, sftp: SFTPWrapper): void {
  const { toText, toBytes } = recodersOf(encoding);
  recodePackets(sftp, {
    isIncoming: (type) => type === RENAME || WITH_PATH.has(type),
    incoming: (packet) => recodePaths(packet, toText),
    outgoing: (packet) => (packet[4] === NAME ? recodeNames(packet, toBytes) : packet),
  });
}

type Recode = (bytes: Buffer) => Buffer;

/** From the bytes of a drop to UTF-8 text, and back. */
function recodersOf(encoding: NameEncoding): { readonly toText: Recode; readonly toBytes: Recode } {
  return {
    toText: (bytes) => Buffer.from(nameOf(bytes, encoding)),
    toBytes: (text) => Buffer.from(bytesOf(text.toString("utf8"), encoding)),
  };
}

interface Recoding {
  /** Whether incoming packets of this type are recoded. */
  readonly isIncoming: (type: number) => boolean;
  readonly incoming: Recode;
  readonly outgoing: Recode;
}

function recodePackets(sftp: SFTPWrapper, { isIncoming, incoming, outgoing }: Recoding): void {
  const push: unknown = Reflect.get(sftp, "push");
  const protocol: unknown = Reflect.get(sftp, "_protocol");
  if (typeof push !== "function" || typeof protocol !== "object" || protocol === null)
    throw new Error("this version of ssh2 lacks the internals that file names need");
  const packets = new IncomingPackets(isIncoming, incoming);
  Reflect.set(sftp, "push", (data: Buffer | null) => {
    if (data === null) return push.call(sftp, data);
    for (const part of packets.take(data)) push.call(sftp, part);
  });
  const encoded = new Proxy(protocol, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      if (key !== "channelData") return value.bind(target);
      return (channel: number, data: Buffer) => value.call(target, channel, isWhole(data) ? outgoing(data) : data);
    },
  });
  Reflect.set(sftp, "_protocol", encoded);
}

/** A long packet is sent in parts, and has no path in it. */
function isWhole(packet: Buffer): boolean {
  return packet.length >= PATH_AT + 4 && packet.readUInt32BE(0) === packet.length - 4;
}

/** Collects the packets that are recoded, and passes all others through. */
class IncomingPackets {
  readonly #isRecoded: (type: number) => boolean;
  readonly #recode: Recode;
  #held: Buffer = Buffer.alloc(0);
  /** Remaining bytes of the current packet that are passed through. */
  #passing = 0;

  constructor(isRecoded: (type: number) => boolean, recode: Recode) {
    this.#isRecoded = isRecoded;
    this.#recode = recode;
  }

  *take(data: Buffer): Generator<Buffer> {
    let rest = this.#held.length === 0 ? data : Buffer.concat([this.#held, data]);
    this.#held = Buffer.alloc(0);
    while (rest.length > 0) {
      if (this.#passing > 0) {
        const part = rest.subarray(0, this.#passing);
        this.#passing -= part.length;
        rest = rest.subarray(part.length);
        yield part;
        continue;
      }
      if (rest.length < HEAD_BYTES) break;
      const length = 4 + rest.readUInt32BE(0);
      if (!this.#isRecoded(rest[4] ?? 0) || length > NAME_BYTES_MAX) {
        this.#passing = length;
        continue;
      }
      if (rest.length < length) break;
      yield this.#recode(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    // A copy, since the connection reuses the memory.
    this.#held = Buffer.from(rest);
  }
}

/**
 * The packet with other names, and without their long forms; unchanged when it cannot be parsed, which ssh2
 * then reports.
 */
function recodeNames(packet: Buffer, recode: Recode): Buffer {
  const parts: Buffer[] = [];
  let copied = 0;
  try {
    const count = packet.readUInt32BE(PATH_AT);
    let at = PATH_AT + 4;
    for (let item = 0; item < count; item += 1) {
      const end = afterText(packet, at);
      const name = packet.subarray(at + 4, end);
      const attributes = afterText(packet, end);
      parts.push(packet.subarray(copied, at), textOf(recode(name)), textOf(Buffer.alloc(0)));
      at = afterAttributes(packet, attributes);
      copied = attributes;
    }
  } catch {
    return packet; // The packet ends inside a field.
  }
  const whole = Buffer.concat([...parts, packet.subarray(copied)]);
  whole.writeUInt32BE(whole.length - 4, 0);
  return whole;
}

/** A request with other paths; any other packet unchanged. */
function recodePaths(packet: Buffer, recode: Recode): Buffer {
  const type = packet[4] ?? 0;
  const paths = type === RENAME ? 2 : WITH_PATH.has(type) ? 1 : 0;
  if (paths === 0) return packet;
  const parts: Buffer[] = [packet.subarray(0, PATH_AT)];
  let at = PATH_AT;
  for (let path = 0; path < paths; path += 1) {
    const end = afterText(packet, at);
    parts.push(textOf(recode(packet.subarray(at + 4, end))));
    at = end;
  }
  const whole = Buffer.concat([...parts, packet.subarray(at)]);
  whole.writeUInt32BE(whole.length - 4, 0);
  return whole;
}

function textOf(bytes: Buffer): Buffer {
  const text = Buffer.allocUnsafe(4 + bytes.length);
  text.writeUInt32BE(bytes.length, 0);
  bytes.copy(text, 4);
  return text;
}

/** Throws when the text goes beyond the packet. */
function afterText(packet: Buffer, at: number): number {
  const end = at + 4 + packet.readUInt32BE(at);
  if (end > packet.length) throw new RangeError("the text goes beyond its packet");
  return end;
}

/** Size, owner, mode and times, each only where its flag is set; then extensions (section 5). */
function afterAttributes(packet: Buffer, from: number): number {
  const flags = packet.readUInt32BE(from);
  let at = from + 4;
  for (const [flag, bytes] of [
    [1, 8],
    [2, 8],
    [4, 4],
    [8, 8],
  ] as const)
    if ((flags & flag) !== 0) at += bytes;
  if (flags >>> 31 === 1) {
    const count = packet.readUInt32BE(at);
    at += 4;
    for (let extension = 0; extension < 2 * count; extension += 1) at = afterText(packet, at);
  }
  if (at > packet.length) throw new RangeError("the attributes go beyond their packet");
  return at;
}
