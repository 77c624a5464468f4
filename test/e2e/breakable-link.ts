/**
 * The way from one gateway to the proxy, which can be shut: then connections are refused for real, and those
 * that stand break.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { breakSocket } from "../support/break-socket.ts";

export class Door {
  readonly url: string;
  readonly #target: number;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.#port = port;
    this.#target = target;
    this.url = `http://127.0.0.1:${port}`;
    server.on("connection", (socket) => this.#lead(socket));
  }

  static async before(target: string): Promise<Door> {
    const server = createServer();
    const port = await listen(server, 0);
    return new Door(server, port, Number(new URL(target).port));
  }

  /** Opens by itself after that time. */
  shutFor(ms: number): void {
    if (this.#server === null) return;
    this.#server.close();
    this.#server = null;
    this.#breakAll();
    this.#timer = setTimeout(() => void this.#reopen(), ms);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const server = this.#server;
    this.#server = null;
    this.#breakAll();
    if (server !== null) await new Promise((resolve) => server.close(resolve));
  }

  /** Before its time. */
  async open(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#server === null) await this.#reopen();
  }

  async #reopen(): Promise<void> {
    const server = createServer((socket) => this.#lead(socket));
    await listen(server, this.#port);
    if (this.#closed) server.close();
    else this.#server = server;
  }

  #lead(socket: Socket): void {
    if (this.#server === null) return void socket.destroy(); // It came just as the door was shut.
    const onward = connect(this.#target, "127.0.0.1");
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy()); // As a broken line, for both.
      one.once("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }

  #breakAll(): void {
    for (const socket of this.#sockets) breakSocket(socket);
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
