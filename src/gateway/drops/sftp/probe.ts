/** `headgate check` at an SFTP drop. */
import type { Stats } from "ssh2";
import type { ProbeFinding } from "../drop.ts";
import type { SftpOptions } from "../options.ts";
import type { ProbeSteps } from "../probe.ts";
import type { TrialFiles } from "../probe-trial.ts";
import type { SftpCalls, SftpConnection, SftpServer } from "./connection.ts";

/** Status codes of the protocol (draft-ietf-secsh-filexfer-02, section 7). */
const STATUS = { noSuchFile: 2, permissionDenied: 3, unsupported: 8 } as const;

export function sftpSteps(options: SftpOptions, connection: SftpConnection): ProbeSteps {
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
export function sftpTrial(connection: SftpConnection, full: (path: string) => string, signal: AbortSignal): TrialFiles {
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

function statusOf(thrown: unknown): unknown {
  return thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
}
