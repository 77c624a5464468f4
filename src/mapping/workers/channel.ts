/**
 * The channel between the gateway and a mapping host: length, digest and serialised message, over and over, in each
 * direction. The threads of a host share its file descriptors, so a mapper can write to the channel and read from it.
 * Each digest is therefore keyed with a secret that the gateway sends first, before the host starts a thread, and
 * covers the number of the message: what fails the check is never deserialised, and ends the channel.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { deserialize, serialize } from "node:v8";

const SECRET_BYTES = 32;
const DIGEST_BYTES = 32;
const HEAD_BYTES = 4 + DIGEST_BYTES;
/** Far beyond any message: a longer one is nonsense. */
const MESSAGE_BYTES = 1024 * 1024 * 1024;

type Side = "gateway" | "host";

/** Numbers the messages of one side and computes their digests. */
class Seal {
  readonly #secret: Buffer;
  readonly #side: Side;
  #count = 0;

  constructor(secret: Buffer, side: Side) {
    this.#secret = secret;
    this.#side = side;
  }

  next(body: Buffer): Buffer {
    this.#count += 1;
    return createHmac("sha256", this.#secret).update(`${this.#side} ${this.#count} `).update(body).digest();
  }
}

export class Channel<Sent, Received> {
  readonly #socket: Socket;
  readonly #own: Seal;
  readonly #other: Seal;
  /** Received bytes that are no complete message yet. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #wanted = HEAD_BYTES;

  /**
   * `onBroken`: what arrived was not sent by the other side, and nothing more is read. The end of the channel is an
   * event of the socket.
   */
  constructor(
    socket: Socket,
    { secret, side }: { readonly secret: Buffer; readonly side: Side },
    onMessage: (message: Received) => void,
    onBroken: () => void,
  ) {
    this.#socket = socket;
    this.#own = new Seal(secret, side);
    this.#other = new Seal(secret, side === "gateway" ? "host" : "gateway");
    socket.on("data", (chunk: Buffer) => {
      if (!this.#receive(chunk, onMessage)) {
        socket.pause().removeAllListeners("data");
        onBroken();
      }
    });
  }

  /** `sent` is called when the message has left this process, or is dropped because the channel has ended. */
  send(message: Sent, sent?: () => void): void {
    const body = serialize(message);
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head.writeUInt32LE(body.length);
    this.#own.next(body).copy(head, 4);
    this.#socket.cork();
    this.#socket.write(head);
    this.#socket.write(body, sent);
    this.#socket.uncork();
  }

  /** Whether all of it could have been sent by the other side. */
  #receive(chunk: Buffer, onMessage: (message: Received) => void): boolean {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#wanted) {
      const all = this.#chunks.length === 1 ? (this.#chunks[0] ?? chunk) : Buffer.concat(this.#chunks, this.#bytes);
      const end = HEAD_BYTES + all.readUInt32LE(0);
      if (end > MESSAGE_BYTES) return false;
      this.#chunks = [all];
      this.#wanted = end;
      if (all.length < end) break;
      const body = all.subarray(HEAD_BYTES, end);
      if (!timingSafeEqual(this.#other.next(body), all.subarray(4, HEAD_BYTES))) return false;
      this.#chunks = all.length === end ? [] : [all.subarray(end)];
      this.#bytes = all.length - end;
      this.#wanted = HEAD_BYTES;
      onMessage(deserialize(body) as Received);
    }
    return true;
  }
}

/** At the gateway: sends the secret ahead of all messages. */
export function sendSecret(socket: Socket): Buffer {
  const secret = randomBytes(SECRET_BYTES);
  socket.write(secret);
  return secret;
}

/** At the host, before any mapper is loaded. */
export async function receiveSecret(socket: Socket): Promise<Buffer> {
  for (;;) {
    const secret = socket.read(SECRET_BYTES) as Buffer | null;
    if (secret !== null) return secret;
    await once(socket, "readable");
  }
}
