/**
 * The data connections of one FTP session. They come from, or go to, the address of the control connection only:
 * others could take a transfer over, or have the hub connect to other machines.
 */
import { randomInt } from "node:crypto";
import { type AddressInfo, connect, createServer, isIPv6, type Server, type Socket } from "node:net";
import type { SecureContext } from "node:tls";
import { systemCode } from "#core/errors.ts";
import { TreeFault } from "./file-tree.ts";
import { securedSocket } from "./ftp-control.ts";

const PRIVILEGED_PORTS = 1_024;

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

interface DataParts {
  readonly control: Socket;
  /** Null: any free one. */
  readonly ports: PortRange | null;
  /** How long the client may take to connect. */
  readonly waitMs: number;
}

export class FtpData {
  readonly #parts: DataParts;
  #server: Server | null = null;
  #next: (() => Promise<Socket>) | null = null;
  #running: Socket | null = null;
  #isClosed = false;

  constructor(parts: DataParts) {
    this.#parts = parts;
  }

  /** Returns the port for the client to connect to. */
  async listen(): Promise<number> {
    this.#forget();
    const { control, waitMs } = this.#parts;
    const server = createServer({ noDelay: true });
    await this.#bind(server);
    if (this.#isClosed) server.close();
    this.#server = server;
    const connected = new Promise<Socket>((resolve) => {
      server.on("connection", (socket) => {
        socket.on("error", () => socket.destroy());
        if (plainAddress(socket.remoteAddress) !== plainAddress(control.remoteAddress)) return void socket.destroy();
        server.close();
        resolve(socket);
      });
    });
    this.#next = () => within(connected, waitMs);
    return (server.address() as AddressInfo).port;
  }

  /** The client listens, at its own address. */
  connectTo(host: string, port: number): void {
    const { control, waitMs } = this.#parts;
    if (plainAddress(host) !== plainAddress(control.remoteAddress) || port < PRIVILEGED_PORTS || port > 65_535)
      throw new TreeFault("denied", "data goes to the address of this client alone, at a port from 1024 on");
    this.#forget();
    this.#next = () => {
      const socket = connect({ host, port });
      const connected = new Promise<Socket>((resolve, reject) => {
        socket.on("error", (thrown) => reject(thrown));
        socket.once("connect", () => resolve(socket));
      });
      return within(connected, waitMs);
    };
  }

  /** The connection for one transfer. Throws `TreeFault` when there is none in time. */
  async take(secure: SecureContext | null): Promise<Socket> {
    const next = this.#next;
    this.#next = null;
    if (next === null) throw noConnection("send EPSV or PASV first");
    const plain = await next().catch(() => null);
    this.#server?.close();
    this.#server = null;
    if (plain === null || this.#isClosed) {
      plain?.destroy();
      throw noConnection("there is no data connection");
    }
    this.#running = plain;
    plain.once("close", () => {
      if (this.#running === plain) this.#running = null;
    });
    return secure === null ? plain : await this.#secured(plain, secure);
  }

  /** With nothing to send, the connection would be closed before TLS has begun. */
  async #secured(plain: Socket, context: SecureContext): Promise<Socket> {
    const socket = securedSocket(plain, context);
    socket.on("error", () => plain.destroy());
    const ready = new Promise<void>((resolve, reject) => {
      socket.once("secure", () => resolve());
      plain.once("close", () => reject(noConnection("TLS could not be agreed on")));
    });
    await within(ready, this.#parts.waitMs);
    return socket;
  }

  /** Breaks off a running transfer. */
  cut(): void {
    this.#running?.destroy();
    this.#forget();
  }

  close(): void {
    this.#isClosed = true;
    this.cut();
  }

  #forget(): void {
    this.#server?.close();
    this.#server = null;
    this.#next = null;
  }

  async #bind(server: Server): Promise<void> {
    const { control, ports } = this.#parts;
    const host = control.localAddress ?? "";
    const listen = (port: number) =>
      new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host, backlog: 5 }, () => resolve());
      });
    if (ports === null) return await listen(0);
    const count = ports.last - ports.first + 1;
    const begin = randomInt(count);
    for (let at = 0; at < count; at += 1) {
      try {
        return await listen(ports.first + ((begin + at) % count));
      } catch (thrown) {
        if (systemCode(thrown) !== "EADDRINUSE") throw thrown;
      }
    }
    throw noConnection("all ports for data are in use; try again");
  }
}

export class NoDataConnection extends TreeFault {}

function noConnection(words: string): NoDataConnection {
  return new NoDataConnection("failed", words);
}

export function plainAddress(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:(?=\d+\.)/i, "").toLowerCase();
}

export function isIPv6Address(address: string | undefined): boolean {
  return isIPv6(plainAddress(address));
}

function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(noConnection("the data connection was not made in time")), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
