/** One client of the FTP server (RFC 959, 2228, 2428, 3659, 4217). Whether files may be read, the tree decides. */

import { randomInt } from "node:crypto";
import { type AddressInfo, connect, createServer, isIPv6, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { SecureContext } from "node:tls";
import { systemCode } from "#core/errors.ts";
import type { Connection } from "./connections.ts";
import { absolute, type Entry, type FileTree, noSuchFile, TreeFault, type TreeReason, unixLine } from "./file-tree.ts";
import { FtpControl, securedSocket } from "./ftp-control.ts";
import type { ServerParts } from "./server-parts.ts";
import type { TransferUser } from "./sign-in.ts";

export interface FtpParts extends ServerParts {
  readonly tls: { readonly context: SecureContext; readonly isRequired: boolean } | null;
  readonly ports: PortRange | null;
  /** Reported by PASV; the address of the control connection when null. */
  readonly publicAddress: string | null;
}

const PRIVILEGED_PORTS = 1_024;
const TYPES = { file: "file", folder: "dir", link: "OS.unix=symlink" } as const;

// Commands, codes and features of the FTP server.

/** Commands that need no sign-in. */
const OPEN = new Set(["USER", "PASS", "AUTH", "PBSZ", "PROT", "FEAT", "SYST", "OPTS", "QUIT", "NOOP", "HELP"]);
const CODE_OF: Readonly<Record<TreeReason, number>> = {
  missing: 550,
  denied: 550,
  exists: 550,
  full: 552,
  failed: 550,
};
const FEATURES = ["EPSV", "UTF8", "SIZE", "MDTM", "MFMT", "REST STREAM", "TVFS", "MLST type*;size*;modify*;"];
const ALIASES: Readonly<Record<string, string>> = {
  XPWD: "PWD",
  XCWD: "CWD",
  XMKD: "MKD",
  XRMD: "RMD",
  XCUP: "CDUP",
};

const READ_BYTES = 64 * 1024;

export class FtpSession {
  readonly #parts: FtpParts;
  readonly #connection: Connection;
  readonly #control: FtpControl;
  readonly #data: FtpData;
  readonly #commands: Readonly<Record<string, Command>>;
  #fileCommands: Readonly<Record<string, Command>> = {};
  #name = "";
  #folder: FtpFolder | null = null;
  #restart = 0;
  #isDataSecured: boolean;
  #isTransferring = false;

  constructor(parts: FtpParts, connection: Connection, isImplicit: boolean) {
    this.#parts = parts;
    this.#connection = connection;
    this.#isDataSecured = isImplicit;
    const { socket } = connection;
    this.#data = new FtpData({ control: socket, ports: parts.ports, waitMs: parts.options.stalled });
    this.#commands = { ...this.#sessionCommands(), ...this.#dataCommands() };
    this.#control = new FtpControl(socket, {
      handle: (line) => this.#handle(line),
      isUrgent: (line) => this.#isAbort(line),
    });
    socket.once("close", () => this.#data.close());
    this.#control.listen(isImplicit ? (parts.tls?.context ?? null) : null);
    this.#reply(220, "ready");
  }

  #reply(code: number, text: string): void {
    this.#control.reply(code, text);
  }

  async #handle(line: string): Promise<void> {
    this.#connection.moved();
    this.#folder?.tree.answersArrived?.();
    const [, given = "", argument = ""] = /^\s*(\w+)(?: (.*))?$/s.exec(line) ?? [];
    const name = ALIASES[given.toUpperCase()] ?? given.toUpperCase();
    if (this.#folder === null && !OPEN.has(name)) return this.#reply(530, "sign in first");
    const command = this.#commands[name] ?? this.#fileCommands[name];
    if (command === undefined) return this.#reply(502, "this command is not supported");
    try {
      await command(argument);
    } catch (thrown) {
      this.#refuse(thrown);
    } finally {
      this.#connection.moved();
    }
  }

  #refuse(thrown: unknown): void {
    if (thrown instanceof TreeFault) {
      const code = thrown instanceof NoDataConnection ? 425 : CODE_OF[thrown.reason];
      return void this.#reply(code, thrown.message);
    }
    const { log } = this.#parts;
    log.error({ user: this.#connection.username, err: thrown }, "a command of the FTP server failed");
    this.#reply(451, "the hub could not do this; try again later");
  }

  #isAbort(line: string): boolean {
    if (!this.#isTransferring || !/^abor\b/i.test(line)) return false;
    this.#data.cut();
    return true;
  }

  get #own(): FtpFolder {
    if (this.#folder === null) throw new TreeFault("denied", "sign in first");
    return this.#folder;
  }

  #sessionCommands(): Record<string, Command> {
    const { tls } = this.#parts;
    const well: Command = () => this.#reply(200, "done");
    return {
      USER: (name) => {
        if (this.#folder !== null) return this.#reply(503, "signed in already");
        if (tls?.isRequired === true && !this.#control.isSecured) return this.#reply(530, "send AUTH TLS first");
        this.#name = name;
        this.#reply(331, "the password");
      },
      PASS: (password) => this.#signIn(password),
      AUTH: (mechanism) => {
        if (tls === null || this.#control.isSecured) return this.#reply(503, "no TLS here");
        if (!/^(tls|ssl)(-[cp])?$/i.test(mechanism)) return this.#reply(504, "only AUTH TLS");
        this.#reply(234, "continue with TLS");
        this.#control.secure(tls.context);
      },
      PBSZ: () => this.#reply(200, "PBSZ=0"),
      PROT: (level) => {
        if (!this.#control.isSecured) return this.#reply(503, "send AUTH TLS first");
        const isPrivate = level.toUpperCase() === "P";
        if (!isPrivate && level.toUpperCase() !== "C") return this.#reply(536, "only PROT P and PROT C");
        if (!isPrivate && tls?.isRequired === true) return this.#reply(534, "data is sent by TLS here");
        this.#isDataSecured = isPrivate;
        this.#reply(200, "done");
      },
      FEAT: () => {
        const secure = tls === null ? [] : ["AUTH TLS", "PBSZ", "PROT"];
        this.#control.replyLines(211, "features", [...FEATURES, ...secure], "end");
      },
      SYST: () => this.#reply(215, "UNIX Type: L8"),
      HELP: () => this.#reply(214, "files are sent here, and become files of the account"),
      OPTS: well,
      NOOP: well,
      TYPE: (type) => (/^[AIL]/i.test(type) ? this.#reply(200, "done") : this.#reply(504, "only TYPE A and TYPE I")),
      MODE: (mode) => (/^s$/i.test(mode) ? this.#reply(200, "done") : this.#reply(504, "only MODE S")),
      STRU: (structure) => (/^f$/i.test(structure) ? this.#reply(200, "done") : this.#reply(504, "only STRU F")),
      ALLO: () => this.#reply(202, "not needed"),
      ABOR: () => this.#reply(226, "nothing is being transferred"),
      STAT: () => this.#reply(211, "ready"),
      QUIT: () => {
        this.#reply(221, "good-bye");
        this.#control.end();
      },
    };
  }

  async #signIn(password: string): Promise<void> {
    if (this.#folder !== null) return this.#reply(503, "signed in already");
    if (this.#name === "") return this.#reply(503, "send USER first");
    const { signIn, options } = this.#parts;
    const verdict = await signIn.byPassword(this.#name, password, this.#connection.address);
    if (verdict.kind === "user") return this.#enter(verdict.user);
    this.#connection.failures += 1;
    if (verdict.kind === "refused" && this.#connection.failures < options.attempts)
      return this.#reply(530, "wrong user name or password, or no right to push");
    this.#reply(421, verdict.kind === "later" ? verdict.why : "too many wrong passwords");
    this.#control.end();
  }

  #enter(user: TransferUser): void {
    if (!this.#parts.connections.enter(this.#connection, user)) {
      this.#reply(421, "the account has too many connections: end others, or try again later");
      this.#control.end();
      return;
    }
    const tree = user.treeFor(this.#control.isSecured ? "ftps" : "ftp");
    this.#folder = new FtpFolder(tree, this.#control, this.#connection);
    this.#fileCommands = this.#folder.commands();
    this.#reply(230, "signed in");
  }

  #dataCommands(): Record<string, Command> {
    const { socket } = this.#connection;
    const nowMs = () => this.#parts.clock.now().epochMilliseconds;
    return {
      EPSV: async (argument) => {
        if (/^all$/i.test(argument)) return this.#reply(200, "done");
        this.#reply(229, `Entering Extended Passive Mode (|||${await this.#data.listen()}|)`);
      },
      PASV: async () => {
        const address = this.#parts.publicAddress ?? plainAddress(socket.localAddress);
        if (isIPv6Address(address)) return this.#reply(425, "send EPSV for IPv6");
        const port = await this.#data.listen();
        this.#reply(227, `Entering Passive Mode (${address.replaceAll(".", ",")},${port >> 8},${port & 255})`);
      },
      PORT: (argument) => {
        const parts = /^(\d+),(\d+),(\d+),(\d+),(\d+),(\d+)$/.exec(argument)?.slice(1).map(Number);
        if (parts === undefined) return this.#reply(501, "expected h1,h2,h3,h4,p1,p2");
        this.#data.connectTo(parts.slice(0, 4).join("."), (parts[4] ?? 0) * 256 + (parts[5] ?? 0));
        this.#reply(200, "done");
      },
      EPRT: (argument) => {
        const [, , host = "", port = ""] = /^([\x21-\x7e])[12]\1([^|]+)\1(\d{1,5})\1$/.exec(argument) ?? [];
        if (host === "") return this.#reply(501, "expected |1|address|port|");
        this.#data.connectTo(host, Number(port));
        this.#reply(200, "done");
      },
      LIST: (argument) => this.#list(argument, (entry) => unixLine(entry, nowMs())),
      NLST: (argument) => this.#list(argument, ({ name }) => name),
      MLSD: (argument) => this.#list(argument, (entry) => `${factsOf(entry)} ${entry.name}`),
      REST: (position) => {
        if (!/^\d{1,15}$/.test(position)) return this.#reply(501, "expected a number of bytes");
        this.#restart = Number(position);
        this.#reply(350, `continues at byte ${position}`);
      },
      STOR: (path) => this.#store(path, false),
      APPE: (path) => this.#store(path, true),
      RETR: (path) => this.#send(path),
    };
  }

  async #list(argument: string, line: (entry: Entry) => string): Promise<void> {
    // Clients write options as for `ls`.
    const path = this.#own.at(argument.replace(/^(-\S+\s*)+/, ""));
    const one = await this.#own.tree.stat(path);
    const entries = one.kind !== "folder" ? [one] : await this.#own.tree.list(path);
    const text = entries.map((entry) => `${line(entry)}\r\n`).join("");
    this.#reply(150, "here it comes");
    const data = await this.#takeData();
    this.#connection.transfers += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        data.once("close", () => reject(new NoDataConnection("failed", "the data connection was closed")));
        data.end(text, () => resolve());
      });
    } finally {
      this.#connection.transfers -= 1;
    }
    this.#reply(226, "sent");
  }

  async #send(path: string): Promise<void> {
    let position = this.#restart;
    this.#restart = 0;
    const file = await this.#own.tree.read(this.#own.at(path));
    this.#connection.transfers += 1;
    this.#isTransferring = true;
    try {
      this.#reply(150, "here it comes");
      const data = await this.#takeData();
      const connection = this.#connection;
      async function* content() {
        for (;;) {
          const bytes = await file.read(position, READ_BYTES);
          if (bytes.length === 0) return;
          position += bytes.length;
          connection.moved();
          yield bytes;
        }
      }
      await pipeline(content(), data);
    } catch (thrown) {
      this.#data.cut();
      if (thrown instanceof TreeFault) throw thrown;
      return this.#reply(426, "the transfer broke off; it can be continued");
    } finally {
      this.#connection.transfers -= 1;
      this.#isTransferring = false;
      await file.close();
    }
    this.#reply(226, "sent");
  }

  async #store(path: string, isAppended: boolean): Promise<void> {
    const from = this.#restart;
    this.#restart = 0;
    const isContinued = isAppended || from > 0;
    const mode = { truncate: !isContinued, create: from === 0, exclusive: false };
    const upload = await this.#own.tree.write(this.#own.at(path), mode);
    this.#connection.transfers += 1;
    this.#isTransferring = true;
    try {
      if (from > upload.size) throw new TreeFault("failed", `the hub has ${upload.size} bytes of this file`);
      if (!isAppended && from < upload.size) await upload.truncate(from);
      this.#reply(150, "send the file");
      const data = await this.#takeData();
      for await (const chunk of data) {
        await upload.write(chunk as Buffer, upload.size);
        this.#connection.moved();
      }
    } catch (thrown) {
      this.#data.cut();
      await upload.abandon();
      if (thrown instanceof TreeFault) throw thrown;
      return this.#reply(426, "the transfer broke off; it can be continued");
    } finally {
      this.#connection.transfers -= 1;
      this.#isTransferring = false;
    }
    await this.#connection.work(() => upload.close(() => this.#control.isWanted));
    this.#reply(226, "stored");
  }

  /** This wait has a limit of its own, after which the session stays. */
  #takeData(): Promise<Socket> {
    return this.#connection.work(() => this.#data.take(this.#dataContext()));
  }

  #dataContext(): SecureContext | null {
    const { tls } = this.#parts;
    if (tls === null || this.#isDataSecured) return tls?.context ?? null;
    if (tls.isRequired) throw new NoDataConnection("denied", "send PROT P first");
    return null;
  }
}

// Commands of FTP about files and folders, which need no data connection.

type Command = (argument: string) => Promise<void> | void;

/** Where a signed-in client is. */
class FtpFolder {
  readonly tree: FileTree;
  readonly #control: FtpControl;
  readonly #connection: Connection;
  #folder = "/";
  #renameFrom: string | null = null;

  constructor(tree: FileTree, control: FtpControl, connection: Connection) {
    this.tree = tree;
    this.#control = control;
    this.#connection = connection;
  }

  at(path: string): string {
    return absolute(path, this.#folder);
  }

  commands(): Record<string, Command> {
    return {
      PWD: () => this.#control.reply(257, `"${this.#folder.replaceAll('"', '""')}"`),
      CWD: (path) => this.#enterFolder(path),
      CDUP: () => this.#enterFolder(".."),
      SIZE: async (path) => this.#control.reply(213, String((await this.#file(path)).size)),
      MDTM: async (path) => this.#control.reply(213, stamp((await this.#file(path)).modifiedMs)),
      MLST: async (path) => {
        const entry = await this.tree.stat(this.at(path));
        this.#control.replyLines(250, "facts", [`${factsOf(entry)} ${this.at(path)}`], "end");
      },
      MFMT: async (argument) => {
        const [, time = "", path = ""] = /^(\d{14})(?:\.\d+)? (.+)$/s.exec(argument) ?? [];
        const ms = Date.parse(time.replace(/^(....)(..)(..)(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6Z"));
        if (Number.isNaN(ms)) return this.#control.reply(501, "expected YYYYMMDDHHMMSS and a path");
        await this.tree.setModified(this.at(path), ms);
        this.#control.reply(213, `Modify=${time}; ${path}`);
      },
      RNFR: async (path) => {
        await this.tree.stat(this.at(path));
        this.#renameFrom = this.at(path);
        this.#control.reply(350, "send RNTO");
      },
      RNTO: async (path) => {
        const from = this.#renameFrom;
        this.#renameFrom = null;
        if (from === null) return this.#control.reply(503, "send RNFR first");
        await this.#connection.work(() => this.tree.rename(from, this.at(path)));
        this.#control.reply(250, "renamed");
      },
      DELE: async (path) => {
        await this.tree.remove(this.at(path));
        this.#control.reply(250, "removed");
      },
      MKD: async (path) => {
        await this.tree.makeFolder(this.at(path));
        this.#control.reply(257, `"${this.at(path).replaceAll('"', '""')}" made`);
      },
      RMD: async (path) => {
        await this.tree.removeFolder(this.at(path));
        this.#control.reply(250, "removed");
      },
    };
  }

  async #enterFolder(path: string): Promise<void> {
    const folder = this.at(path);
    if ((await this.tree.stat(folder)).kind !== "folder") throw new TreeFault("failed", "is no folder");
    this.#folder = folder;
    this.#control.reply(250, "done");
  }

  async #file(path: string): Promise<Entry> {
    const entry = await this.tree.stat(this.at(path));
    if (entry.kind !== "file") throw noSuchFile();
    return entry;
  }
}

function factsOf({ kind, size, modifiedMs }: Entry): string {
  return `type=${TYPES[kind]};size=${size};modify=${stamp(modifiedMs)};`;
}

/** `20260301001500`, in UTC. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:TZ]|\..*/g, "");
}

// The data connections of one FTP session. They come from, or go to, the address of the control connection only:
// others could take a transfer over, or have the hub connect to other machines.

interface PortRange {
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

class FtpData {
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

class NoDataConnection extends TreeFault {}

function noConnection(words: string): NoDataConnection {
  return new NoDataConnection("failed", words);
}

function plainAddress(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:(?=\d+\.)/i, "").toLowerCase();
}

function isIPv6Address(address: string | undefined): boolean {
  return isIPv6(plainAddress(address));
}

function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(noConnection("the data connection was not made in time")), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
