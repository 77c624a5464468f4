/** A small SFTP server on loopback, for tests: one user, one folder, nothing outside it. */

import { createHash } from "node:crypto";
import type { Dir, Stats } from "node:fs";
import { link, lstat, mkdir, open, opendir, realpath, rm, rmdir, stat, unlink, utimes } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { dirname, join, posix, sep } from "node:path";
import ssh2, { type Attributes, type AuthContext, type FileEntry, type ServerConfig, type SFTPWrapper } from "ssh2";
import { systemCode } from "#core/errors.ts";
import { serveNamesAs } from "#gateway/drops/sftp/connection.ts";
import type { FieldHooks } from "./hooks.ts";
import { type Loopback, listenOnLoopback } from "./loopback.ts";

// Node cannot detect these names in the CommonJS module.
const { Server, utils } = ssh2;
const STATUS = { ok: 0, eof: 1, noSuchFile: 2, permissionDenied: 3, failure: 4, unsupported: 8 } as const;
const ENTRIES_AT_ONCE = 100;

export interface FieldSftpOptions {
  readonly root: string;
  readonly username: string;
  readonly password: string;
  /** 0 for any free one. */
  readonly port?: number;
  /** OpenSSH private key text; a fresh key when absent. */
  readonly hostKey?: string;
  /** How users log in; `password` when absent. `publickey` accepts any key of this user. */
  readonly login?: "password" | "keyboard-interactive" | "publickey";
  /** Encoding of names; `utf8` when absent. */
  readonly encoding?: "utf8" | "latin1";
  /** The algorithms that the server offers; the usual ones when absent. */
  readonly algorithms?: ServerConfig["algorithms"];
  /** For tests. */
  readonly hooks?: FieldHooks;
}

export interface FieldSftp extends Loopback {
  readonly hostKeyFingerprint: string;
  readonly hostKey: string;
  /** Connections at this moment. */
  connections(): number;
  /** Open channels, and open handles of files and folders, of these connections. */
  channels(): number;
}

export async function startFieldSftp(options: FieldSftpOptions): Promise<FieldSftp> {
  const hostKey = options.hostKey ?? freshHostKey();
  const root = await realpath(options.root);
  const sockets = new Set<Socket>();
  const sessions = new Set<SftpSession>();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const { algorithms, hooks = {} } = options;
  const speak = (key: string) =>
    new Server({ hostKeys: [key], ...(algorithms === undefined ? {} : { algorithms }) }, (connection) => {
      connection.on("error", () => undefined); // A client that disconnects is no fault here.
      connection.on("authentication", (login) => authenticate(options, login));
      connection.on("session", (accept) => {
        accept().on("sftp", (acceptSftp: () => SFTPWrapper) => {
          const sftp = acceptSftp();
          if (options.encoding === "latin1") serveNamesAs("latin-1", sftp);
          const session = new SftpSession(root, sftp, hooks, cut, () => sessions.delete(session));
          sessions.add(session);
          session.listen();
        });
      });
    });
  const protocol = speak(hostKey);
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    (hooks.changesHostKey?.() === true ? speak(freshHostKey()) : protocol).injectSocket(socket);
  });
  return {
    ...(await listenOnLoopback(server, options.port, cut)),
    hostKeyFingerprint: fingerprintOf(hostKey),
    hostKey,
    connections: () => sockets.size,
    channels: () => [...sessions].reduce((sum, session) => sum + 1 + session.handles, 0),
  };
}

function authenticate(options: FieldSftpOptions, login: AuthContext): void {
  const method = options.login ?? "password";
  const answer = (known: boolean) => {
    if (known) login.accept();
    else login.reject([method]);
  };
  if (login.method !== method || login.username !== options.username) answer(false);
  else if (login.method === "keyboard-interactive")
    login.prompt([{ prompt: "Password: ", echo: false }], (said) => answer(said[0] === options.password));
  else answer(login.method === "publickey" || (login.method === "password" && login.password === options.password));
}

/** ssh2 sometimes generates a key that it cannot read itself; then another one is generated. */
function freshHostKey(): string {
  for (;;) {
    const { private: key } = utils.generateKeyPairSync("ed25519");
    if (!(utils.parseKey(key) instanceof Error)) return key;
  }
}

function fingerprintOf(hostKey: string): string {
  const key = utils.parseKey(hostKey);
  if (key instanceof Error) throw key;
  return `SHA256:${createHash("sha256").update(key.getPublicSSH()).digest("base64").replace(/=+$/, "")}`;
}

type Opened =
  | { readonly kind: "file"; readonly file: Awaited<ReturnType<typeof open>> }
  | {
      readonly kind: "folder";
      readonly path: string;
      readonly folder: Dir;
    };

/** One SFTP channel (protocol version 3, draft-ietf-secsh-filexfer-02). */
class SftpSession {
  readonly #root: string;
  readonly #sftp: SFTPWrapper;
  readonly #hooks: FieldHooks;
  readonly #cut: () => void;
  readonly #opened = new Map<number, Opened>();
  #ended = false;
  #nextHandle = 1;

  readonly #onEnd: () => void;

  constructor(root: string, sftp: SFTPWrapper, hooks: FieldHooks, cut: () => void, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#root = root;
    this.#sftp = sftp;
    this.#hooks = hooks;
    this.#cut = cut;
  }

  get handles(): number {
    return this.#opened.size;
  }

  listen(): void {
    const sftp = this.#sftp;
    sftp.on("OPEN", (id, path, flags) => this.#answer(id, () => this.#open(id, path, flags)));
    sftp.on("READ", (id, handle, from, length) => this.#answer(id, () => this.#read(id, handle, from, length)));
    sftp.on("WRITE", (id, handle, at, data) =>
      this.#done(id, async () => void (await this.#file(handle).write(data, 0, data.length, at))),
    );
    sftp.on("CLOSE", (id, handle) => this.#done(id, () => this.#close(handle)));
    sftp.on("FSTAT", (id, handle) =>
      this.#answer(id, async () => sftp.attrs(id, attributes(await this.#file(handle).stat()))),
    );
    sftp.on("STAT", (id, path) =>
      this.#answer(id, async () => sftp.attrs(id, attributes(await stat(await this.#target(path))))),
    );
    sftp.on("LSTAT", (id, path) =>
      this.#answer(id, async () => sftp.attrs(id, attributes(await lstat(await this.#place(path))))),
    );
    sftp.on("SETSTAT", (id, path, attrs) => this.#done(id, async () => setTimes(await this.#target(path), attrs)));
    sftp.on("FSETSTAT", (id) => this.#done(id, async () => undefined));
    sftp.on("OPENDIR", (id, path) => this.#answer(id, () => this.#openFolder(id, path)));
    sftp.on("READDIR", (id, handle) => this.#answer(id, () => this.#readFolder(id, handle)));
    sftp.on("REMOVE", (id, path) => this.#done(id, async () => unlink(await this.#place(path))));
    sftp.on("MKDIR", (id, path) => this.#done(id, async () => mkdir(await this.#place(path))));
    sftp.on("RMDIR", (id, path) => this.#done(id, async () => rmdir(await this.#place(path))));
    sftp.on("RENAME", (id, from, to) => this.#done(id, () => this.#rename(from, to)));
    sftp.on("REALPATH", (id, path) =>
      sftp.name(id, [{ filename: posix.resolve("/", path), longname: "", attrs: noAttributes }]),
    );
    sftp.on("close", () => this.#end());
    sftp.on("error", () => this.#end());
  }

  async #end(): Promise<void> {
    this.#ended = true;
    this.#onEnd();
    for (const [handle, opened] of this.#opened) {
      this.#opened.delete(handle);
      if (opened.kind === "file") await opened.file.close();
      else await opened.folder.close();
    }
  }

  #done(id: number, work: () => Promise<unknown>): void {
    void this.#answer(id, async () => {
      await work();
      this.#sftp.status(id, STATUS.ok);
    });
  }

  async #answer(id: number, work: () => Promise<void>): Promise<void> {
    if (this.#hooks.isSilent?.() === true) return;
    try {
      await work();
    } catch (thrown) {
      this.#sftp.status(id, statusOf(thrown), thrown instanceof Error ? thrown.message : undefined);
    }
  }

  async #open(id: number, path: string, flags: number): Promise<void> {
    const mode = utils.sftp.flagsToString(flags) ?? "r";
    const full = mode === "r" ? await this.#target(path) : await this.#place(path);
    const file = await open(full, mode);
    // The client has disconnected meanwhile.
    if (this.#ended) return await file.close();
    this.#hand(id, { kind: "file", file });
  }

  async #read(id: number, handle: Buffer, from: number, length: number): Promise<void> {
    const buffer = Buffer.alloc(Math.min(length, 256 * 1024));
    const { bytesRead } = await this.#file(handle).read(buffer, 0, buffer.length, from);
    if (bytesRead === 0) return this.#sftp.status(id, STATUS.eof);
    const verdict = this.#hooks.beforeContent?.(bytesRead) ?? "send";
    if (verdict === "cut") return this.#cut();
    if (verdict === "stall") return;
    this.#sftp.data(id, buffer.subarray(0, bytesRead));
  }

  async #openFolder(id: number, path: string): Promise<void> {
    const full = await this.#target(path);
    const folder = await opendir(full);
    if (this.#ended) return await folder.close();
    this.#hand(id, { kind: "folder", path: full, folder });
  }

  async #readFolder(id: number, handle: Buffer): Promise<void> {
    const opened = this.#opened.get(handle.readUInt32BE());
    if (opened?.kind !== "folder") throw new Error("no such folder handle");
    const names: FileEntry[] = [];
    while (names.length < ENTRIES_AT_ONCE) {
      const next = await opened.folder.read();
      if (next === null) break;
      const status = await lstat(join(opened.path, next.name)).catch(() => null); // It may have been removed meanwhile.
      if (status === null) continue;
      names.push({ filename: next.name, longname: next.name, attrs: attributes(status) });
    }
    if (names.length === 0) this.#sftp.status(id, STATUS.eof);
    else this.#sftp.name(id, names);
  }

  /** Renames without overwriting, as OpenSSH does for files. */
  async #rename(from: string, to: string): Promise<void> {
    const source = await this.#place(from);
    await link(source, await this.#place(to));
    await rm(source);
  }

  #hand(id: number, opened: Opened): void {
    const number = this.#nextHandle++;
    this.#opened.set(number, opened);
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(number);
    this.#sftp.handle(id, handle);
  }

  #file(handle: Buffer) {
    const opened = this.#opened.get(handle.readUInt32BE());
    if (opened?.kind !== "file") throw new Error("no such file handle");
    return opened.file;
  }

  async #close(handle: Buffer): Promise<void> {
    const number = handle.readUInt32BE();
    const opened = this.#opened.get(number);
    this.#opened.delete(number);
    if (opened?.kind === "file") await opened.file.close();
    else await opened?.folder.close();
  }

  /** The full path of a name, whose folder must be within the root. */
  async #place(path: string): Promise<string> {
    const inside = posix.resolve("/", path);
    if (inside === "/") return this.#root;
    const full = join(this.#root, inside);
    this.#refuseOutside(await realpath(dirname(full)));
    return full;
  }

  /** Like `#place`, for the target of the path, links followed. */
  async #target(path: string): Promise<string> {
    const target = await realpath(await this.#place(path));
    this.#refuseOutside(target);
    return target;
  }

  #refuseOutside(full: string): void {
    if (full === this.#root || full.startsWith(this.#root + sep)) return;
    throw Object.assign(new Error("outside of the served folder"), { code: "EACCES" });
  }
}

const noAttributes: Attributes = { mode: 0, uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 };

function attributes(status: Stats): Attributes {
  const { mode, uid, gid, size, atimeMs, mtimeMs } = status;
  return { mode, uid, gid, size, atime: Math.floor(atimeMs / 1000), mtime: Math.floor(mtimeMs / 1000) };
}

async function setTimes(full: string, attrs: Attributes): Promise<void> {
  if (attrs.mtime !== undefined) await utimes(full, attrs.atime ?? attrs.mtime, attrs.mtime);
}

function statusOf(thrown: unknown): number {
  const code = systemCode(thrown);
  if (code === "ENOENT" || code === "ENOTDIR") return STATUS.noSuchFile;
  return code === "EACCES" || code === "EPERM" ? STATUS.permissionDenied : STATUS.failure;
}
