/**
 * File names on an SFTP channel. ssh2 decodes every name as UTF-8, and replaces invalid bytes by a character
 * that names no file. So names are converted to UTF-8 before ssh2 reads a response, with escapes for bytes
 * that are not text (`file-names.ts`), and paths to the bytes of the server before a request leaves. Packets:
 * draft-ietf-secsh-filexfer-02, section 3.
 */
import type { SFTPWrapper } from "ssh2";
import { bytesOf, type NameEncoding, nameOf } from "#core/file-names.ts";

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

/** For a client's channel that is open and idle. */
export function readNamesAs(encoding: NameEncoding, sftp: SFTPWrapper): void {
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
