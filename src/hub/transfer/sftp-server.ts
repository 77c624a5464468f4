/** The SFTP server: users sign in, and get a file tree. No shell, no commands, no forwarding. */
import { createServer } from "node:net";
import { posix } from "node:path";
import ssh2, {
  type Attributes,
  type AuthContext,
  type AuthenticationType,
  type InputAttributes,
  type KeyboardAuthContext,
  type SFTPWrapper,
  type Connection as SshConnection,
} from "ssh2";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Connection } from "./connections.ts";
import {
  absolute,
  type Download,
  type Entry,
  type FileTree,
  TreeFault,
  type TreeReason,
  type Upload,
  unixLine,
} from "./file-tree.ts";
import { type Listening, listenOn, type ServerParts } from "./server-parts.ts";
import type { SignedIn } from "./sign-in.ts";

// Node cannot detect this name in the CommonJS module.
const { utils } = ssh2;
const STATUS = { ok: 0, eof: 1, noSuchFile: 2, permissionDenied: 3, failure: 4 } as const;
const STATUS_OF: Readonly<Record<TreeReason, number>> = {
  missing: STATUS.noSuchFile,
  denied: STATUS.permissionDenied,
  exists: STATUS.failure,
  full: STATUS.failure,
  failed: STATUS.failure,
};
const ENTRIES_AT_ONCE = 100;
const HANDLES_MAX = 64;
/** Of requests that are not answered yet; beyond it the connection is not read. */
const PENDING_BYTES_MAX = 16 * 1024 * 1024;
const READ_BYTES_MAX = 256 * 1024;
/** Memory of a request, beside its bytes. */
const REQUEST_BYTES = 1_024;
const MODES = { file: 0o100644, folder: 0o040755, link: 0o120777 } as const;
const FLAG = utils.sftp.OPEN_MODE;
const NONE: Attributes = { mode: 0, uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 };

// Node cannot detect this name in the CommonJS module.
const { Server } = ssh2;
const METHODS: AuthenticationType[] = ["publickey", "password", "keyboard-interactive"];
const SESSIONS_MAX = 8;

export async function startSftp(address: string, hostKeys: readonly string[], parts: ServerParts): Promise<Listening> {
  const { connections } = parts;
  const arrived = new Map<string, Connection>();
  const protocol = new Server(
    // Without compression: a small packet cannot become a large one.
    { hostKeys: [...hostKeys], ident: "headgate", algorithms: { compress: ["none"] } },
    (ssh, { ip, port }) => {
      ssh.on("error", () => undefined); // A client that disconnects is no fault here.
      const connection = arrived.get(`${ip} ${port}`);
      if (connection === undefined) ssh.end();
      else serve(ssh, connection, parts);
    },
  );
  const server = createServer({ noDelay: true }, (socket) => {
    const connection = connections.admit(socket);
    if (connection === null) return;
    const key = `${socket.remoteAddress} ${socket.remotePort}`;
    arrived.set(key, connection);
    socket.once("close", () => arrived.delete(key));
    protocol.injectSocket(socket);
  });
  return await listenOn(server, address, "`transfer.sftp.listen`");
}

function serve(ssh: SshConnection, connection: Connection, parts: ServerParts): void {
  const { log, clock, options, connections } = parts;
  const sessions = new Set<SftpSession>();
  let signedIn: Extract<SignedIn, { kind: "user" }> | null = null;
  ssh.on("authentication", (login) => {
    const decided = async () => {
      const verdict = await verdictOn(login, connection, parts);
      if (verdict.kind === "user") {
        signedIn = verdict;
        return login.accept();
      }
      if (login.method !== "none") connection.failures += 1;
      if (verdict.kind === "refused" && connection.failures < options.attempts) return login.reject(METHODS);
      login.reject([]);
      ssh.end();
    };
    decided().catch((thrown) => {
      log.error({ err: thrown }, "a sign-in to the SFTP server could not be checked");
      ssh.end();
    });
  });
  ssh.on("ready", () => {
    if (signedIn !== null && connections.enter(connection, signedIn.user)) return;
    signedIn = null;
    ssh.end();
  });
  ssh.on("session", (accept, reject) => {
    if (sessions.size >= SESSIONS_MAX) return reject();
    accept().on("sftp", (acceptSftp: () => SFTPWrapper, refuse: () => void) => {
      if (signedIn === null || sessions.size >= SESSIONS_MAX) return refuse();
      const tree = signedIn.user.treeFor("sftp");
      const nowMs = () => clock.now().epochMilliseconds;
      const session = new SftpSession({ sftp: acceptSftp(), tree, connection, log, nowMs });
      sessions.add(session);
      session.listen(() => sessions.delete(session));
    });
  });
  connection.socket.once("close", () => {
    for (const session of sessions) session.end();
  });
}

async function verdictOn(login: AuthContext, { address }: Connection, { signIn }: ServerParts): Promise<SignedIn> {
  const { username } = login;
  if (login.method === "password") return await signIn.byPassword(username, login.password, address);
  if (login.method === "keyboard-interactive") return await signIn.byPassword(username, await asked(login), address);
  if (login.method !== "publickey") return { kind: "refused" };
  const { key, blob, signature, hashAlgo } = login;
  const proof = blob === undefined || signature === undefined ? null : { signed: blob, signature, hash: hashAlgo };
  return await signIn.byKey(username, { data: key.data, proof }, address);
}

function asked(login: KeyboardAuthContext): Promise<string> {
  return new Promise((resolve) => {
    login.prompt([{ prompt: "Password: ", echo: false }], (answers) => resolve(answers[0] ?? ""));
  });
}

/** `end`: where the next bytes go, of a file that is appended to. */
type Opened =
  | { readonly kind: "file"; readonly path: string; readonly upload: Upload; end: number | null }
  | { readonly kind: "download"; readonly path: string; readonly download: Download }
  | { readonly kind: "folder"; readonly rest: Entry[] };

interface SessionParts {
  readonly sftp: SFTPWrapper;
  readonly tree: FileTree;
  readonly connection: Connection;
  readonly log: Logger;
  readonly nowMs: () => number;
}

/** One SFTP channel (protocol version 3, draft-ietf-secsh-filexfer-02): whether they may be read, the tree decides. */
class SftpSession {
  readonly #parts: SessionParts;
  readonly #sftp: SFTPWrapper;
  readonly #opened = new Map<number, Opened>();
  #nextHandle = 1;
  #pendingBytes = 0;
  #isEnded = false;
  /** The client has nothing more to ask. */
  #isLeft = false;
  #onEnd = () => undefined as unknown;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#sftp = parts.sftp;
  }

  listen(onEnd: () => unknown): void {
    this.#onEnd = onEnd;
    const sftp = this.#sftp;
    const { tree } = this.#parts;
    const stat = (id: number, path: string) =>
      this.#answer(id, async () => sftp.attrs(id, attributesOf(await tree.stat(absolute(path)))));
    sftp.on("OPEN", (id, path, flags) => this.#answer(id, () => this.#open(id, absolute(path), flags)));
    sftp.on("WRITE", (id, handle, position, bytes) =>
      this.#done(id, () => this.#write(handle, position, bytes), bytes.length),
    );
    sftp.on("READ", (id, handle, position, length) => {
      const bytes = Math.min(length, READ_BYTES_MAX);
      this.#answer(id, () => this.#read(id, handle, position, bytes), bytes);
    });
    sftp.on("CLOSE", (id, handle) => this.#done(id, () => this.#close(handle)));
    sftp.on("STAT", stat);
    sftp.on("LSTAT", stat);
    sftp.on("FSTAT", (id, handle) =>
      this.#answer(id, async () => {
        const { path, size } = this.#status(handle);
        sftp.attrs(id, { ...attributesOf(await tree.stat(path)), size });
      }),
    );
    sftp.on("SETSTAT", (id, path, attributes) => this.#done(id, () => this.#setStatus(absolute(path), attributes)));
    sftp.on("FSETSTAT", (id, handle, { size, mtime }) =>
      this.#done(id, async () => {
        const { upload } = this.#file(handle);
        if (size !== undefined && size !== upload.size) await upload.truncate(size);
        if (mtime !== undefined) await upload.setModified(mtime * 1_000);
      }),
    );
    sftp.on("OPENDIR", (id, path) =>
      this.#answer(id, async () => this.#hand(id, { kind: "folder", rest: [...(await tree.list(absolute(path)))] })),
    );
    sftp.on("READDIR", (id, handle) => this.#answer(id, async () => this.#readFolder(id, handle)));
    sftp.on("REMOVE", (id, path) => this.#done(id, () => tree.remove(absolute(path))));
    sftp.on("MKDIR", (id, path) => this.#done(id, () => tree.makeFolder(absolute(path))));
    sftp.on("RMDIR", (id, path) => this.#done(id, () => tree.removeFolder(absolute(path))));
    sftp.on("RENAME", (id, from, to) =>
      this.#done(id, () => this.#parts.connection.work(() => tree.rename(absolute(from), absolute(to)))),
    );
    sftp.on("REALPATH", (id, path) => sftp.name(id, [{ filename: absolute(path), longname: "", attrs: NONE }]));
    sftp.on("close", () => this.end());
    sftp.on("end", () => this.#leave());
    sftp.on("error", () => this.end());
  }

  /** Files that were not closed can be continued. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd();
    const { connection, log } = this.#parts;
    for (const opened of this.#opened.values()) {
      if (opened.kind === "folder") continue;
      connection.transfers -= 1;
      const ended = opened.kind === "file" ? opened.upload.abandon() : opened.download.close();
      ended.catch((thrown) => log.warn({ err: wordsOf(thrown) }, "a file could not be closed"));
    }
    this.#opened.clear();
  }

  /** OpenSSH's client waits for the channel to be closed once it has nothing more to ask. */
  #leave(): void {
    const { connection, tree } = this.#parts;
    // The end of a lost connection looks the same otherwise.
    if (!connection.socket.readableEnded && !connection.socket.destroyed) tree.answersArrived?.();
    this.#isLeft = true;
    this.end();
    if (this.#pendingBytes === 0) endInOrder(this.#sftp);
  }

  #done(id: number, work: () => Promise<void>, bytes = 0): void {
    this.#answer(
      id,
      async () => {
        await work();
        this.#collect();
        this.#sftp.status(id, STATUS.ok);
      },
      bytes,
    );
  }

  #answer(id: number, work: () => Promise<unknown>, bytes = 0): void {
    const { connection, tree } = this.#parts;
    connection.moved();
    tree.answersArrived?.();
    this.#pend(bytes + REQUEST_BYTES);
    const run = async () => {
      try {
        await work();
      } catch (thrown) {
        this.#refuse(id, thrown);
      } finally {
        connection.moved();
        this.#pend(-bytes - REQUEST_BYTES);
        if (this.#isLeft && this.#pendingBytes === 0) endInOrder(this.#sftp);
      }
    };
    void run();
  }

  /** The answers of one moment are sent by one call. */
  #collect(): void {
    const { socket } = this.#parts.connection;
    if (socket.writableCorked > 0) return;
    socket.cork();
    setImmediate(() => socket.uncork());
  }

  #refuse(id: number, thrown: unknown): void {
    if (thrown instanceof TreeFault) return void this.#sftp.status(id, STATUS_OF[thrown.reason], thrown.message);
    const { log, connection } = this.#parts;
    log.error({ user: connection.username, err: thrown }, "a request of the SFTP server failed");
    this.#sftp.status(id, STATUS.failure, "the hub could not do this; try again later");
  }

  #pend(bytes: number): void {
    const { socket } = this.#parts.connection;
    this.#pendingBytes += bytes;
    if (this.#pendingBytes > PENDING_BYTES_MAX) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  async #open(id: number, path: string, flags: number): Promise<void> {
    const { connection, tree } = this.#parts;
    const has = (flag: number) => (flags & flag) !== 0;
    if (this.#opened.size >= HANDLES_MAX) throw tooManyHandles();
    if (!has(FLAG.WRITE | FLAG.APPEND)) {
      const download = await tree.read(path);
      // The client has disconnected meanwhile.
      if (this.#isEnded) return await download.close();
      connection.transfers += 1;
      return this.#hand(id, { kind: "download", path, download });
    }
    const upload = await tree.write(path, {
      truncate: has(FLAG.TRUNC),
      create: has(FLAG.CREAT),
      exclusive: has(FLAG.EXCL),
    });
    // The client has disconnected meanwhile.
    if (this.#isEnded) return await upload.abandon();
    connection.transfers += 1;
    this.#hand(id, { kind: "file", path, upload, end: has(FLAG.APPEND) ? upload.size : null });
  }

  async #read(id: number, handle: Buffer, position: number, length: number): Promise<void> {
    const opened = this.#opened.get(numberOf(handle));
    if (opened?.kind === "file") throw new TreeFault("denied", "the file is being written");
    if (opened?.kind !== "download") throw noSuchHandle();
    const bytes = await opened.download.read(position, length);
    if (bytes.length === 0) this.#sftp.status(id, STATUS.eof);
    else this.#sftp.data(id, bytes);
  }

  async #write(handle: Buffer, position: number, bytes: Buffer): Promise<void> {
    const file = this.#file(handle);
    // Several writes come before the first is done, so the size of the file does not say where the next one goes.
    const at = file.end ?? position;
    if (file.end !== null) file.end += bytes.length;
    await file.upload.write(bytes, at);
  }

  async #close(handle: Buffer): Promise<void> {
    const number = numberOf(handle);
    const opened = this.#opened.get(number);
    if (opened === undefined) throw noSuchHandle();
    this.#opened.delete(number);
    if (opened.kind === "folder") return;
    const { connection } = this.#parts;
    connection.transfers -= 1;
    if (opened.kind === "download") return await opened.download.close();
    await connection.work(() => opened.upload.close(() => !connection.socket.destroyed));
  }

  async #setStatus(path: string, { size, mtime }: InputAttributes): Promise<void> {
    const { tree } = this.#parts;
    const { size: known } = await tree.stat(path);
    if (size !== undefined && size !== known) await tree.truncate(path, size);
    if (mtime !== undefined) await tree.setModified(path, Number(mtime) * 1_000);
  }

  #readFolder(id: number, handle: Buffer): void {
    const opened = this.#opened.get(numberOf(handle));
    if (opened?.kind !== "folder") throw noSuchHandle();
    const entries = opened.rest.splice(0, ENTRIES_AT_ONCE);
    if (entries.length === 0) return void this.#sftp.status(id, STATUS.eof);
    const nowMs = this.#parts.nowMs();
    this.#sftp.name(
      id,
      entries.map((entry) => ({
        filename: posix.basename(entry.name),
        longname: unixLine(entry, nowMs),
        attrs: attributesOf(entry),
      })),
    );
  }

  #hand(id: number, opened: Opened): void {
    if (this.#opened.size >= HANDLES_MAX) throw tooManyHandles();
    const number = this.#nextHandle++;
    this.#opened.set(number, opened);
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(number);
    this.#collect();
    this.#sftp.handle(id, handle);
  }

  #status(handle: Buffer): { readonly path: string; readonly size: number } {
    const opened = this.#opened.get(numberOf(handle));
    if (opened === undefined || opened.kind === "folder") throw noSuchHandle();
    const { size } = opened.kind === "file" ? opened.upload : opened.download;
    return { path: opened.path, size };
  }

  #file(handle: Buffer): Extract<Opened, { kind: "file" }> {
    const opened = this.#opened.get(numberOf(handle));
    if (opened?.kind !== "file") throw noSuchHandle();
    return opened;
  }
}

function attributesOf({ kind, size, modifiedMs }: Entry): Attributes {
  const seconds = Math.floor(modifiedMs / 1_000);
  return { ...NONE, mode: MODES[kind], size, atime: seconds, mtime: seconds };
}

function numberOf(handle: Buffer): number {
  return handle.length === 4 ? handle.readUInt32BE() : 0;
}

function noSuchHandle(): TreeFault {
  return new TreeFault("failed", "no such handle");
}

function tooManyHandles(): TreeFault {
  return new TreeFault("full", `a session has at most ${HANDLES_MAX} open files and folders`);
}

// The end of an SFTP channel.

/** Other channels of ssh2 have `exit`; its SFTP channel has only the parts of it. */
type ChannelParts = SFTPWrapper & {
  readonly _protocol: { exitStatus(channel: number, status: number): void };
  readonly outgoing: { readonly id: number; readonly state: string };
};

/** OpenSSH's scp counts a channel that is closed without an exit status as failed. */
function endInOrder(sftp: SFTPWrapper): void {
  const { _protocol: protocol, outgoing } = sftp as ChannelParts;
  if (outgoing.state === "open") protocol.exitStatus(outgoing.id, 0);
  sftp.end();
}
