/** One control connection of the small FTP server (RFC 959, 2428, 3659, 4217): one command at a time. */
import { createReadStream, createWriteStream, type Stats } from "node:fs";
import { lstat, mkdir, readdir, realpath, rename, rmdir, stat, unlink } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { basename, dirname, join, posix, sep } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import type { FieldFtpOptions } from "./ftp.ts";

type Facts = FieldFtpOptions & { readonly root: string };
type Command = (argument: string) => Promise<void> | void;

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** Commands that need no login. */
const OPEN = ["USER", "PASS", "AUTH", "PBSZ", "PROT", "FEAT", "SYST", "OPTS", "QUIT", "NOOP"];

export class FtpSession {
  readonly #facts: Facts;
  readonly #onEnd: () => void;
  readonly #commands: Readonly<Record<string, Command>>;
  #socket: Socket;
  #received = "";
  #turn: Promise<void> = Promise.resolve();
  #user = "";
  #loggedIn = false;
  #folder = "/";
  #renameFrom: string | null = null;
  #restart = 0;
  #passive: Server | null = null;
  #data: Promise<Socket> | null = null;
  #secure: SecureContext | null = null;
  #protectData = false;

  constructor(facts: Facts, socket: Socket, onEnd: () => void) {
    this.#facts = facts;
    this.#socket = socket;
    this.#onEnd = onEnd;
    this.#commands = { ...this.#sessionCommands(), ...this.#transferCommands(), ...this.#fileCommands() };
  }

  listen(): void {
    this.#attach(this.#facts.tls?.implicit === true ? this.#secured(this.#socket) : this.#socket);
    this.#protectData = this.#facts.tls?.implicit === true;
    this.#reply(220, "ready");
  }

  end(): void {
    this.#closePassive();
    this.#socket.destroy();
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#received += bytes.toString(this.#encoding);
      const lines = this.#received.split("\r\n");
      this.#received = lines.pop() ?? "";
      for (const line of lines) this.#turn = this.#turn.then(() => this.#handle(line));
    });
    socket.on("error", () => socket.destroy()); // A client that disconnects is no fault here.
    socket.on("close", () => {
      this.#closePassive();
      this.#onEnd();
    });
  }

  get #isSilent(): boolean {
    return this.#facts.hooks?.isSilent?.() === true;
  }

  #reply(code: number, text: string): void {
    if (!this.#isSilent && this.#socket.writable) this.#socket.write(`${code} ${text}\r\n`, this.#encoding);
  }

  #replyLines(code: number, first: string, lines: readonly string[], last: string): void {
    if (this.#isSilent || !this.#socket.writable) return;
    this.#socket.write(
      [`${code}-${first}`, ...lines.map((line) => ` ${line}`), `${code} ${last}`, ""].join("\r\n"),
      this.#encoding,
    );
  }

  async #handle(line: string): Promise<void> {
    const space = line.indexOf(" ");
    const name = (space < 0 ? line : line.slice(0, space)).toUpperCase();
    const command = this.#commands[name];
    if (command === undefined) return this.#reply(502, `${name} is not implemented`);
    if (!this.#loggedIn && !OPEN.includes(name)) return this.#reply(530, "log in first");
    try {
      const rest = space < 0 ? "" : line.slice(space + 1);
      await command(this.#facts.cutsBlanks === true ? rest.replace(/ *(\/|^|$) */g, "$1") : rest);
    } catch (thrown) {
      this.#reply(550, thrown instanceof Error ? thrown.message : "failed");
    }
  }

  #sessionCommands(): Record<string, Command> {
    const machine = this.#facts.machineListing !== false;
    const { tls } = this.#facts;
    return {
      USER: (name) => {
        this.#user = name;
        this.#reply(331, "password");
      },
      PASS: (password) => {
        this.#loggedIn = this.#user === this.#facts.username && password === this.#facts.password;
        this.#reply(this.#loggedIn ? 230 : 530, this.#loggedIn ? "logged in" : "login incorrect");
      },
      FEAT: () =>
        this.#replyLines(
          211,
          "features",
          ["EPSV", "UTF8", "SIZE", "MDTM", "REST STREAM", ...(machine ? ["MLST type*;size*;modify*;"] : [])],
          "end",
        ),
      SYST: () => this.#reply(215, "UNIX Type: L8"),
      OPTS: () => this.#reply(200, "well"),
      NOOP: () => this.#reply(200, "well"),
      TYPE: () => this.#reply(200, "well"),
      STRU: () => this.#reply(200, "well"),
      PBSZ: () => this.#reply(200, "0"),
      PROT: (level) => {
        this.#protectData = level === "P";
        this.#reply(200, "well");
      },
      AUTH: () => {
        if (tls === undefined) return this.#reply(502, "no TLS here");
        const plain = this.#socket;
        plain.removeAllListeners("data");
        this.#reply(234, "continue with TLS");
        this.#attach(this.#secured(plain));
      },
      QUIT: () => {
        this.#reply(221, "good-bye");
        this.#socket.end();
      },
    };
  }

  #transferCommands(): Record<string, Command> {
    const machine = this.#facts.machineListing !== false;
    const list: Command = async (argument) => {
      const folder = await this.#place(argument.startsWith("-") ? "" : argument);
      const lines = (await itemsOf(folder)).map(([name, status]) => unixLine(name, status));
      await this.#sendLines(lines);
    };
    return {
      EPSV: async () => {
        if (this.#facts.extendedPassive === false) return this.#reply(500, "EPSV is not known");
        this.#reply(229, `Entering Extended Passive Mode (|||${await this.#listenForData()}|)`);
      },
      PASV: async () => {
        const port = await this.#listenForData();
        this.#reply(
          227,
          "Entering Passive Mode " +
            `(${(this.#facts.passiveAddress ?? "127.0.0.1").replaceAll(".", ",")},${port >> 8},${port & 255})`,
        );
      },
      LIST: list,
      ...(machine ? this.#machineCommands() : {}),
      REST: (from) => {
        this.#restart = Number(from);
        this.#reply(350, "restarting");
      },
      RETR: async (path) => {
        const full = await this.#place(path);
        if (!(await stat(full)).isFile()) throw new Error("not a file");
        const start = this.#restart;
        this.#restart = 0;
        this.#reply(150, "coming");
        await pipeline(createReadStream(full, { start }), this.#hooked(), await this.#takeData());
        this.#reply(226, "sent");
      },
      STOR: async (path) => {
        const full = await this.#place(path);
        this.#reply(150, "send");
        const data = await this.#takeData();
        await pipeline(data, createWriteStream(full));
        this.#reply(226, "stored");
      },
    };
  }

  #machineCommands(): Record<string, Command> {
    return {
      MLSD: async (argument) => {
        const items = await itemsOf(await this.#place(argument));
        await this.#sendLines(items.map(([name, status]) => `${factsOf(status)} ${name}`));
      },
      MLST: async (argument) => {
        const full = await this.#place(argument);
        this.#replyLines(250, "facts", [`${factsOf(await lstat(full))} ${argument}`], "end");
      },
    };
  }

  #fileCommands(): Record<string, Command> {
    return {
      PWD: () => this.#reply(257, `"${this.#folder}" is where you are`),
      CWD: async (path) => {
        if (!(await stat(await this.#place(path))).isDirectory()) throw new Error("not a folder");
        this.#folder = posix.resolve(this.#folder, path);
        this.#reply(250, "well");
      },
      SIZE: async (path) => this.#reply(213, String((await stat(await this.#place(path))).size)),
      MDTM: async (path) => this.#reply(213, stamp((await stat(await this.#place(path))).mtime)),
      RNFR: async (path) => {
        if (this.#facts.hooks?.refusesRename?.() === true) return this.#reply(550, "not permitted");
        this.#renameFrom = await this.#place(path);
        await lstat(this.#renameFrom);
        this.#reply(350, "to what?");
      },
      RNTO: async (path) => {
        if (this.#renameFrom === null) return this.#reply(503, "RNFR first");
        await rename(this.#renameFrom, await this.#place(path));
        this.#renameFrom = null;
        this.#reply(250, "renamed");
      },
      DELE: async (path) => {
        await unlink(await this.#place(path));
        this.#reply(250, "deleted");
      },
      MKD: async (path) => {
        await mkdir(await this.#place(path));
        this.#reply(257, `"${path}" made`);
      },
      RMD: async (path) => {
        await rmdir(await this.#place(path));
        this.#reply(250, "removed");
      },
    };
  }

  async #listenForData(): Promise<number> {
    this.#closePassive();
    const server = createServer();
    this.#passive = server;
    this.#data = new Promise((resolve) => {
      server.once("connection", (socket) => {
        server.close();
        socket.on("error", () => socket.destroy());
        resolve(socket);
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  async #takeData(): Promise<Socket> {
    if (this.#data === null) throw new Error("EPSV or PASV first");
    const socket = await this.#data;
    this.#data = null;
    return this.#protectData ? this.#secured(socket) : socket;
  }

  get #encoding(): "utf8" | "latin1" {
    return this.#facts.encoding ?? "utf8";
  }

  #secured(plain: Socket): TLSSocket {
    const { key, cert, clientCa } = this.#facts.tls ?? {};
    this.#secure ??= createSecureContext({ key, cert, ca: clientCa, sessionIdContext: "field" });
    return new TLSSocket(plain, {
      isServer: true,
      secureContext: this.#secure,
      requestCert: clientCa !== undefined,
      rejectUnauthorized: clientCa !== undefined,
    });
  }

  #closePassive(): void {
    this.#passive?.close();
    this.#data?.then((socket) => socket.destroy());
    this.#passive = null;
    this.#data = null;
  }

  async #sendLines(lines: readonly string[]): Promise<void> {
    this.#reply(150, "coming");
    const data = await this.#takeData();
    const listing = Buffer.from(lines.map((line) => `${line}\r\n`).join(""), this.#encoding);
    await new Promise<void>((resolve) => data.end(this.#facts.hooks?.listing?.(listing) ?? listing, () => resolve()));
    this.#reply(226, "sent");
  }

  /** Passes file content through, as the hooks permit. */
  #hooked(): Transform {
    const { hooks } = this.#facts;
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const verdict = hooks?.beforeContent?.(chunk.length) ?? "send";
        if (verdict === "send") done(null, chunk);
        if (verdict !== "cut") return;
        this.end();
        done(new Error("cut"));
      },
    });
  }

  /** The full path of a name, whose folder must be within the root. */
  async #place(path: string): Promise<string> {
    const { root } = this.#facts;
    const full = join(root, posix.resolve(this.#folder, path));
    if (full === root || full === root + sep) return root;
    const folder = await realpath(dirname(full));
    if (folder !== root && !folder.startsWith(root + sep)) throw new Error("outside of the served folder");
    return join(folder, basename(full));
  }
}

async function itemsOf(folder: string): Promise<[string, Stats][]> {
  const items: [string, Stats][] = [];
  for (const name of (await readdir(folder)).sort()) {
    const status = await lstat(join(folder, name)).catch(() => null); // It may have been removed meanwhile.
    if (status !== null) items.push([name, status]);
  }
  return items;
}

function factsOf(status: Stats): string {
  const type = status.isDirectory() ? "dir" : status.isSymbolicLink() ? "OS.unix=symlink" : "file";
  return `type=${type};size=${status.size};modify=${stamp(status.mtime)};`;
}

/** `20260301001500.123`, in UTC. */
function stamp(time: Date): string {
  return time.toISOString().replace(/[-:TZ]/g, "");
}

/** A line as `ls -l` writes it, with seconds left out as real servers do. */
function unixLine(name: string, status: Stats): string {
  const type = status.isDirectory() ? "d" : status.isSymbolicLink() ? "l" : "-";
  const time = status.mtime;
  const two = (part: number) => String(part).padStart(2, "0");
  const when =
    `${MONTHS[time.getUTCMonth()]} ${two(time.getUTCDate())} ` +
    `${two(time.getUTCHours())}:${two(time.getUTCMinutes())}`;
  return `${type}rw-r--r-- 1 owner group ${status.size} ${when} ${name}`;
}
