/** A directory on an SFTP server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import type { FileEntryWithStats, SFTPWrapper, Stats } from "ssh2";
import type { Logger } from "#core/log.ts";
import type { FileEntry } from "../../model.ts";
import type { Drop, ProbeFinding } from "../drop.ts";
import type { SourceFiles } from "../finish.ts";
import type { FolderItem, FolderWalk } from "../folder-walk.ts";
import type { SftpOptions } from "../options.ts";
import type { ProbeSteps } from "../probe.ts";
import type { TrialFiles } from "../probe-trial.ts";
import type { Receiver } from "../receive.ts";
import { type RemoteCheck, RemoteDrop, type RemoteProtocol } from "../remote-drop.ts";
import { type SftpCalls, SftpConnection, type SftpServer } from "./connection.ts";

/** Status codes of the protocol (draft-ietf-secsh-filexfer-02, section 7). */

/** Status codes of the protocol (draft-ietf-secsh-filexfer-02, section 7). */
const STATUS = { eof: 1, noSuchFile: 2, permissionDenied: 3, failure: 4, unsupported: 8 } as const;
/** Bytes of one request, and number of concurrent requests. */
const READ_BYTES = 32 * 1024;
const READS_AHEAD = 16;

/** Does not use the network. */
export function createSftpDrop(options: SftpOptions, log: Logger): Drop {
  return new RemoteDrop(options, log, new SftpProtocol(options));
}

class SftpProtocol implements RemoteProtocol<SftpCalls> {
  readonly kind = "sftp";
  readonly address: string;
  readonly check: RemoteCheck;
  readonly #options: SftpOptions;
  readonly #connection: SftpConnection;

  constructor(options: SftpOptions) {
    this.#options = options;
    this.address = `${options.host}:${options.port}`;
    this.#connection = new SftpConnection(options);
    this.check = {
      whyNoClock: "the server reported no time of a file",
      steps: sftpSteps(options, this.#connection),
      listedBy: () => "",
      begin: () => undefined,
      trial: (signal) => sftpTrial(this.#connection, (path) => this.#full(path), signal),
    };
  }

  use<T>(signal: AbortSignal, work: (calls: SftpCalls) => Promise<T>): Promise<T> {
    return this.#connection.use(signal, work);
  }

  async *list(walk: FolderWalk, signal: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    for (let folder = walk.next(); folder !== undefined; folder = walk.next()) {
      const isThere = yield* this.#listFolder(folder, walk, signal);
      if (isThere) walk.complete();
    }
  }

  /** Returns false for a folder that vanished meanwhile. */
  async *#listFolder(
    folder: string,
    walk: FolderWalk,
    signal: AbortSignal,
  ): AsyncGenerator<readonly FileEntry[], boolean> {
    const opened = await this.use(signal, async (calls) => {
      try {
        const open = (sftp: SFTPWrapper, answer: (error: Error | undefined, handle: Buffer) => void) =>
          sftp.opendir(this.#full(folder), answer);
        return { calls, handle: await calls.call("open folder", open) };
      } catch (thrown) {
        if (folder !== "" && statusOf(thrown) === STATUS.noSuchFile) return null; // The folder vanished.
        throw thrown;
      }
    });
    if (opened === null) return false;
    const { calls, handle } = opened; // A handle belongs to its channel.
    try {
      for (;;) {
        const items = await this.use(signal, () => readFolder(calls, handle));
        if (items === null) return true;
        const files: FileEntry[] = [];
        for (const { filename, attrs } of items) {
          const path = walk.take({ name: filename, kind: kindOf(attrs) });
          if (path !== null) files.push(entryOf(path, attrs));
        }
        yield files;
      }
    } finally {
      await closeHandle(calls, handle);
    }
  }

  async stat(calls: SftpCalls, path: string): Promise<FileEntry | null> {
    try {
      const full = this.#full(path);
      // ProFTPD follows links in LSTAT too, so READLINK is sent as well; a server without READLINK has no
      // links to show.
      const link = calls
        .call<string>("read link", (sftp, answer) => sftp.readlink(full, answer))
        .then(
          () => true,
          () => false,
        );
      const status = await calls.call<Stats>("stat file", (sftp, answer) => sftp.lstat(full, answer));
      return status.isFile() && !(await link) ? entryOf(path, status) : null;
    } catch (thrown) {
      if (statusOf(thrown) === STATUS.noSuchFile) return null;
      throw thrown;
    }
  }

  async copy(calls: SftpCalls, entry: FileEntry, receiver: Receiver): Promise<void> {
    const handle = await calls.call<Buffer>("open file", (sftp, answer) =>
      sftp.open(this.#full(entry.path), "r", answer),
    );
    try {
      for await (const chunk of readAhead(calls, handle, receiver.bytes, entry.size)) await receiver.write(chunk);
    } finally {
      await closeHandle(calls, handle);
    }
  }

  files(calls: SftpCalls): Omit<SourceFiles, "stat"> {
    return {
      makeFolder: async (path) => {
        const folder = this.#full(path);
        try {
          await calls.call<void>("make folder", (sftp, answer) =>
            sftp.mkdir(folder, (error) => answer(error, undefined)),
          );
        } catch (thrown) {
          // Servers report a bare failure when the folder exists already.
          const there = await calls
            .call<Stats>("stat folder", (sftp, answer) => sftp.stat(folder, answer))
            .catch(() => null);
          if (!there?.isDirectory()) throw thrown;
        }
      },
      move: (from, to) =>
        calls.call<null>("rename file", (sftp, answer) =>
          sftp.rename(this.#full(from), this.#full(to), (error) => answer(error, null)),
        ),
      remove: async (path) => {
        try {
          await calls.call<void>("delete file", (sftp, answer) =>
            sftp.unlink(this.#full(path), (error) => answer(error, undefined)),
          );
        } catch (thrown) {
          if (statusOf(thrown) !== STATUS.noSuchFile) throw thrown;
        }
      },
      isRefused: (thrown) => statusOf(thrown) === STATUS.permissionDenied,
    };
  }

  #full(path: string): string {
    return posix.join(this.#options.path, path);
  }

  modifiedMs(entry: FileEntry): number {
    return Number(entry.mtime) * 1000;
  }

  meaningOf(thrown: unknown): "refused" | "missing" | null {
    const status = statusOf(thrown);
    if (status === STATUS.permissionDenied) return "refused";
    return status === STATUS.noSuchFile ? "missing" : null;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

function entryOf(path: string, status: { readonly size: number; readonly mtime: number }): FileEntry {
  return { path, size: status.size, mtime: String(status.mtime) };
}

function kindOf(attrs: Stats): FolderItem["kind"] {
  if (attrs.isDirectory()) return "folder";
  if (attrs.isSymbolicLink()) return "link";
  return attrs.isFile() ? "file" : "other";
}

function statusOf(thrown: unknown): number | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "number" ? thrown.code : undefined;
}

/** The next part of a folder as the server sends it, or null at its end. */
async function readFolder(calls: SftpCalls, handle: Buffer): Promise<FileEntryWithStats[] | null> {
  try {
    return await calls.call<FileEntryWithStats[]>("list folder", (sftp, answer) => sftp.readdir(handle, answer));
  } catch (thrown) {
    if (statusOf(thrown) === STATUS.eof) return null;
    throw thrown;
  }
}

async function closeHandle(calls: SftpCalls, handle: Buffer): Promise<void> {
  // The server closes the handles of a broken connection by itself.
  await calls
    .call<void>("close handle", (sftp, answer) => sftp.close(handle, (error) => answer(error, undefined)))
    .catch(() => undefined);
}

/** The bytes in order, with several concurrent requests, so that latency costs no speed. */
async function* readAhead(calls: SftpCalls, handle: Buffer, from: number, size: number): AsyncGenerator<Buffer> {
  const coming: Promise<Buffer>[] = [];
  for (let next = from; next < size || coming.length > 0; ) {
    while (next < size && coming.length < READS_AHEAD) {
      const length = Math.min(READ_BYTES, size - next);
      const part = readPart(calls, handle, next, length);
      part.catch(() => undefined); // Awaited in order; until then a failure must not count as unhandled.
      coming.push(part);
      next += length;
    }
    const part = await coming.shift();
    if (part === undefined || part.length === 0) return; // Shorter than listed, which the receiver reports.
    yield part;
  }
}

/** The requested number of bytes, or fewer at the end of the file. */
async function readPart(calls: SftpCalls, handle: Buffer, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const read = await calls
      .call<number>("read file", (sftp, answer) =>
        sftp.read(handle, buffer, filled, length - filled, from + filled, answer),
      )
      .catch((thrown: unknown) => {
        if (statusOf(thrown) === STATUS.eof) return 0;
        throw thrown;
      });
    if (read === 0) break;
    filled += read;
  }
  return buffer.subarray(0, filled);
}

// `headgate check` at an SFTP drop.

function sftpSteps(options: SftpOptions, connection: SftpConnection): ProbeSteps {
  return {
    greet: async (signal) => serverFindings(options, await connection.use(signal, async ({ server }) => server)),
    transferred: async () => [],
  };
}

function serverFindings(options: SftpOptions, { software, extensions, hostKey }: SftpServer): readonly ProbeFinding[] {
  const names = extensions.map((name) => name.replace(/@openssh\.com$/, "")).toSorted();
  return [
    {
      level: "ok",
      about: "server",
      what:
        `${software === "" ? "an SSH server of unknown software" : software}, ` +
        `logged in to ${options.host}:${options.port} as ${options.username}`,
    },
    {
      level: "ok",
      about: "host key",
      what: `${hostKey.type} ${hostKey.fingerprint}, ${hostKey.trustedBy}`,
    },
    {
      level: "ok",
      about: "features",
      what: names.length === 0 ? "no extensions of SFTP, and none is needed" : names.join(", "),
    },
  ];
}

/** `full` converts a path of the drop to one of the server. */
function sftpTrial(connection: SftpConnection, full: (path: string) => string, signal: AbortSignal): TrialFiles {
  const ask = <T>(work: (calls: SftpCalls) => Promise<T>) => connection.use(signal, work);
  const plain = (operation: string, request: Parameters<typeof SftpCalls.prototype.call<void>>[1]) =>
    ask((calls) => calls.call<void>(operation, request));
  const statOrNull = (path: string) =>
    ask((calls) => calls.call<Stats>("stat file", (sftp, answer) => sftp.lstat(full(path), answer)).catch(missing));
  return {
    write: (path, content) => ask((calls) => write(calls, full(path), content)),
    modified: async (path) => {
      const status = await statOrNull(path);
      return status === null ? null : { atMs: status.mtime * 1000, precisionMs: 1000 };
    },
    exists: async (path) => (await statOrNull(path)) !== null,
    isFolder: (path) =>
      ask(async (calls) => {
        const status = await calls
          .call<Stats>("stat folder", (sftp, answer) => sftp.stat(full(path), answer))
          .catch(missing);
        return status?.isDirectory() === true;
      }),
    makeFolder: (path) =>
      plain("make folder", (sftp, answer) => sftp.mkdir(full(path), (error) => answer(error, undefined))),
    removeFolder: (path) =>
      plain("remove folder", (sftp, answer) => sftp.rmdir(full(path), (error) => answer(error, undefined))),
    move: (from, to) =>
      plain("rename file", (sftp, answer) => sftp.rename(full(from), full(to), (error) => answer(error, undefined))),
    remove: (path) =>
      plain("delete file", (sftp, answer) => sftp.unlink(full(path), (error) => answer(error, undefined))),
    isRefusal: (thrown) => {
      const status = statusOf(thrown);
      return status === STATUS.permissionDenied || status === STATUS.unsupported;
    },
  };
}

async function write(calls: SftpCalls, path: string, content: string): Promise<void> {
  const bytes = Buffer.from(content);
  const handle = await calls.call<Buffer>("make file", (sftp, answer) => sftp.open(path, "wx", answer));
  try {
    await calls.call<void>("write file", (sftp, answer) =>
      sftp.write(handle, bytes, 0, bytes.length, 0, (error) => answer(error, undefined)),
    );
  } finally {
    await calls.call<void>("close handle", (sftp, answer) => sftp.close(handle, (error) => answer(error, undefined)));
  }
}

function missing(thrown: unknown): null {
  if (statusOf(thrown) === STATUS.noSuchFile) return null;
  throw thrown;
}
