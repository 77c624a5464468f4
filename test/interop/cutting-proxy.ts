/**
 * A line between a gateway and a file server that cuts, stalls and refuses by chance: TCP as it is, and of
 * FTP also the data connections, whose ports it learns from the answers to EPSV and PASV and replaces by its
 * own.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { breakSocket } from "../support/break-socket.ts";

/** What becomes of one connection. Bytes count from the server. */
type Fate =
  | { readonly kind: "passed" }
  | { readonly kind: "refused" }
  | { readonly kind: "cut" | "stalled"; readonly afterBytes: number };

export interface CuttingProxyParts {
  readonly targetPort: number;
  /** Whether answers of the server name ports of data connections. */
  readonly isFtp: boolean;
  /** From 0 to 1. */
  readonly chance: () => number;
}

/**
 * Where a cut falls at most: within a listing or a file of FTP, which have connections of their own, and
 * within some polls of SFTP.
 */
const BYTES_MAX = { ftp: 4_000, sftp: 40_000 } as const;
/** Of all connections while the line is bad. */
const BAD = { refused: 0.1, cut: 0.35, stalled: 0.1 } as const;

export class CuttingProxy {
  readonly port: number;
  /** What was done to connections, for a round that fails. */
  readonly played: string[] = [];
  isBad = true;
  readonly #parts: CuttingProxyParts;
  readonly #server: Server;
  readonly #servers = new Set<Server>();
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number, parts: CuttingProxyParts) {
    this.#server = server;
    this.port = port;
    this.#parts = parts;
    server.on("connection", (socket) => this.#lead(socket, parts.targetPort, parts.isFtp));
  }

  static async start(parts: CuttingProxyParts): Promise<CuttingProxy> {
    const server = createServer();
    return new CuttingProxy(server, await listen(server), parts);
  }

  /** Breaks all connections that there are. */
  cutAll(): void {
    this.played.push(`cut all ${this.#sockets.size}`);
    for (const socket of this.#sockets) breakSocket(socket);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of [this.#server, ...this.#servers]) await new Promise((resolve) => server.close(resolve));
  }

  #fate(): Fate {
    const [which, where] = [this.#parts.chance(), this.#parts.chance()];
    if (!this.isBad || which > BAD.refused + BAD.cut + BAD.stalled) return { kind: "passed" };
    if (which < BAD.refused) return { kind: "refused" };
    const kind = which < BAD.refused + BAD.cut ? "cut" : "stalled";
    return { kind, afterBytes: Math.trunc(where * where * BYTES_MAX[this.#parts.isFtp ? "ftp" : "sftp"]) };
  }

  #lead(socket: Socket, targetPort: number, isControl: boolean): void {
    const fate = this.#fate();
    const what = isControl || targetPort === this.#parts.targetPort ? "connection" : "data connection";
    if (fate.kind !== "passed")
      this.played.push(`${what} ${fate.kind}${"afterBytes" in fate ? ` after ${fate.afterBytes} bytes` : ""}`);
    if (fate.kind === "refused") return void socket.resetAndDestroy();
    const onward = connect(targetPort, "127.0.0.1");
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.once("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    socket.pipe(onward);
    this.#passAnswers(onward, socket, fate, isControl);
  }

  /** From the server to the gateway, up to where the fate of the connection is. */
  #passAnswers(onward: Socket, socket: Socket, fate: Fate, isControl: boolean): void {
    let left = "afterBytes" in fate ? fate.afterBytes : Number.POSITIVE_INFINITY;
    let passing = Promise.resolve();
    onward.on("data", (chunk: Buffer) => {
      passing = passing.then(async () => {
        const bytes = isControl ? await this.#withOwnPort(chunk) : chunk;
        const passed = bytes.subarray(0, left);
        left -= bytes.length;
        if (passed.length > 0) socket.write(passed);
        if (left > 0) return;
        // A data connection that ends in the middle looks like one that ended well.
        if (fate.kind === "cut") socket.destroy();
      });
    });
    onward.once("end", () => {
      passing = passing.then(() => {
        if (left > 0) socket.end();
      });
    });
  }

  /** The port of a data connection is replaced by one that leads to it through here. */
  async #withOwnPort(chunk: Buffer): Promise<Buffer> {
    const text = chunk.toString("latin1");
    const extended = /^(229 [^\r\n]*\(\|\|\|)(\d+)(\|\))/m.exec(text);
    if (extended !== null) {
      const port = await this.#openData(Number(extended[2]));
      return Buffer.from(text.replace(extended[0], `${extended[1]}${port}${extended[3]}`), "latin1");
    }
    const passive = /^(227 [^\r\n]*\d+,\d+,\d+,\d+),(\d+),(\d+)/m.exec(text);
    if (passive === null) return chunk;
    const port = await this.#openData(Number(passive[2]) * 256 + Number(passive[3]));
    const own = `${passive[1]},${port >> 8},${port & 255}`;
    return Buffer.from(text.replace(passive[0], own), "latin1");
  }

  async #openData(targetPort: number): Promise<number> {
    const server = createServer((socket) => {
      server.close();
      this.#lead(socket, targetPort, false);
    });
    this.#servers.add(server);
    server.once("close", () => this.#servers.delete(server));
    return await listen(server);
  }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
