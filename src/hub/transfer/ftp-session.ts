/** One client of the FTP server (RFC 959, 2228, 2428, 3659, 4217). Whether files may be read, the tree decides. */
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { SecureContext } from "node:tls";
import type { Connection } from "./connections.ts";
import { type Entry, TreeFault } from "./file-tree.ts";
import { FtpControl } from "./ftp-control.ts";
import { FtpData, isIPv6Address, NoDataConnection, type PortRange, plainAddress } from "./ftp-data.ts";
import { type Command, FtpFolder, factsOf } from "./ftp-folder.ts";
import { ALIASES, CODE_OF, FEATURES, OPEN } from "./ftp-words.ts";
import type { ServerParts } from "./server-parts.ts";
import type { TransferUser } from "./sign-in.ts";
import { unixLine } from "./unix-line.ts";

export interface FtpParts extends ServerParts {
  readonly tls: { readonly context: SecureContext; readonly isRequired: boolean } | null;
  readonly ports: PortRange | null;
  /** Reported by PASV; the address of the control connection when null. */
  readonly publicAddress: string | null;
}

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
