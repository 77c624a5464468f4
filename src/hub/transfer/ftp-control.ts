/** The control connection of FTP: lines in, replies out, and TLS from the first byte or after AUTH. */
import { isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";

const LINE_BYTES_MAX = 8_192;
const WAITING_MAX = 100;
const LINE_FEED = 0x0a;
/** The escape of Telnet, which some clients write before ABOR. */
const TELNET = 0xff;

export interface ControlParts {
  /** One line at a time. */
  readonly handle: (line: string) => Promise<void>;
  /** Asked for each line as it comes; true: it needs no other treatment. */
  readonly isUrgent: (line: string) => boolean;
}

export class FtpControl {
  readonly #parts: ControlParts;
  #socket: Socket;
  #received = Buffer.alloc(0);
  #waiting: string[] = [];
  #isBusy = false;

  constructor(socket: Socket, parts: ControlParts) {
    this.#socket = socket;
    this.#parts = parts;
  }

  listen(secure: SecureContext | null): void {
    this.#attach(secure === null ? this.#socket : securedSocket(this.#socket, secure));
  }

  get isSecured(): boolean {
    return this.#socket instanceof TLSSocket;
  }

  /** Whether the client is there, or has said good-bye before it left. */
  get isWanted(): boolean {
    const isGone = this.#socket.destroyed || this.#socket.readableEnded;
    return !isGone || this.#waiting.some((line) => /^quit\b/i.test(line));
  }

  /** Lines that came in plain text after AUTH are dropped: an attacker on the network could have written them. */
  secure(context: SecureContext): void {
    const plain = this.#socket;
    plain.removeAllListeners("data");
    this.#received = Buffer.alloc(0);
    this.#waiting = [];
    this.#attach(securedSocket(plain, context));
  }

  reply(code: number, text: string): void {
    this.#write(`${code} ${oneLine(text)}\r\n`);
  }

  replyLines(code: number, first: string, lines: readonly string[], last: string): void {
    this.#write([`${code}-${first}`, ...lines.map((line) => ` ${line}`), `${code} ${last}`, ""].join("\r\n"));
  }

  end(): void {
    this.#waiting = [];
    this.#socket.end();
  }

  #write(text: string): void {
    if (this.#socket.writable) this.#socket.write(text);
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    socket.on("error", () => socket.destroy()); // A client that disconnects is no fault here.
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
  }

  #receive(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (let end = this.#received.indexOf(LINE_FEED); end >= 0; end = this.#received.indexOf(LINE_FEED)) {
      const line = textOf(this.#received.subarray(0, end));
      this.#received = this.#received.subarray(end + 1);
      if (!this.#parts.isUrgent(line)) this.#waiting.push(line);
    }
    if (this.#received.length > LINE_BYTES_MAX || this.#waiting.length > WAITING_MAX) this.#socket.destroy();
    else if (!this.#isBusy) void this.#handleAll();
  }

  async #handleAll(): Promise<void> {
    this.#isBusy = true;
    for (let line = this.#waiting.shift(); line !== undefined; line = this.#waiting.shift())
      await this.#parts.handle(line);
    this.#isBusy = false;
  }
}

export function securedSocket(plain: Socket, secureContext: SecureContext): TLSSocket {
  return new TLSSocket(plain, { isServer: true, secureContext });
}

/** Names are in UTF-8; old clients write Latin-1. */
function textOf(bytes: Buffer): string {
  const kept: number[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte !== TELNET) kept.push(byte);
    else if ((bytes[at + 1] ?? 0) >= 0xf0) at += 1;
  }
  const plain = Buffer.from(kept);
  return plain.toString(isUtf8(plain) ? "utf8" : "latin1").replace(/\r$/, "");
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, " ");
}
