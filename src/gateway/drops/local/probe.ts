/** `headgate check` at a local folder. */
import { lstat, mkdir, rmdir, statfs, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { moveDurably } from "#core/durable.ts";
import { systemCode, unlessMissing } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { ProbeFinding } from "../drop.ts";
import type { LocalOptions } from "../options.ts";
import type { ProbeSteps } from "../probe.ts";
import type { TrialFiles } from "../probe-trial.ts";
import { type ListedTree, LocalEvents, WATCHED_MAX } from "./events.ts";

/** File systems by the type number of statfs(2); only those that make a difference. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "SMB (cifs)",
  4266872130: "SMB 2",
  1702057286: "FUSE",
  16914839: "9P",
  12805120: "Ceph",
  1397113167: "AFS",
};
/** Bytes; below this senders may soon be refused. */
const FREE_LEAST = 200_000_000;

export function localSteps(options: LocalOptions, log: Logger, listed: () => ListedTree | null): ProbeSteps {
  return {
    greet: async () => {
      const facts = await statfs(options.path).catch(() => null); // The listing reports the fault.
      return facts === null ? [] : [folderFinding(options, facts)];
    },
    transferred: async () => [await eventsFinding(options, log, listed())],
  };
}

interface FileSystem {
  readonly type: number;
  readonly bsize: number;
  readonly bavail: number;
}

function folderFinding({ path }: LocalOptions, { type, bsize, bavail }: FileSystem): ProbeFinding {
  const free = bsize * bavail;
  const kind = NETWORK[type >>> 0];
  const where = kind === undefined ? "on a file system of this machine" : `on a network file system (${kind})`;
  const what = `${path} ${where}, ${(free / 1e9).toFixed(1)} GB free`;
  if (free >= FREE_LEAST) return { level: "ok", about: "folder", what };
  return { level: "warning", about: "folder", what, hint: "Free disk space: senders may soon be refused." };
}

async function eventsFinding(options: LocalOptions, log: Logger, tree: ListedTree | null): Promise<ProbeFinding> {
  const { watch, cron } = options;
  const unused = (why: string): ProbeFinding => ({ level: "ok", about: "events", what: `not used: ${why}` });
  if (!watch) return unused("`watch: false`");
  if (cron !== undefined) return unused("polls follow `cron`");
  if (tree === null) return unused("the folder was not listed completely");
  const events = new LocalEvents(options, log, () => undefined);
  try {
    events.listed(tree);
    const arrive = await events.tested();
    if (events.isTooLarge) return tooLarge(tree);
    if (arrive === true) return { level: "ok", about: "events", what: "arrive, so that files are seen at once" };
    if (arrive === null) return { level: "ok", about: "events", what: "whether they arrive is unknown" };
    return {
      level: "warning",
      about: "events",
      what: "do not arrive: files are found only by polls",
      hint: "That is usual for network shares. `every` determines how late a file is found.",
    };
  } finally {
    await events.stop();
  }
}

function tooLarge({ entries, folders }: ListedTree): ProbeFinding {
  const found = `${entries} files and folders in ${folders} folders`;
  const limit = `beyond ${WATCHED_MAX.entries}, or ${WATCHED_MAX.folders} folders`;
  return {
    level: "warning",
    about: "events",
    what: `are not used: ${found}; ${limit}, files are found only by polls`,
    hint: "`every` determines how late a file is found. " + "Archived files, and excluded folders, do not count.",
  };
}

export function localTrial(root: string): TrialFiles {
  const full = (path: string) => join(root, path);
  const statusOf = (path: string) => unlessMissing(lstat(full(path)), null);
  return {
    write: (path, content) => writeFile(full(path), content, { flag: "wx" }),
    modified: async (path) => {
      const status = await statusOf(path);
      // File systems may round times to steps of the kernel's clock.
      return status === null ? null : { atMs: status.mtimeMs, precisionMs: 10 };
    },
    exists: async (path) => (await statusOf(path)) !== null,
    isFolder: async (path) => (await statusOf(path))?.isDirectory() === true,
    makeFolder: async (path) => void (await mkdir(full(path))),
    removeFolder: (path) => rmdir(full(path)),
    move: async (from, to) => void (await moveDurably(full(from), full(to))),
    remove: (path) => unlink(full(path)),
    isRefusal: (thrown) => ["EACCES", "EPERM", "EROFS"].includes(systemCode(thrown) ?? ""),
  };
}
