/**
 * Global set-up of the test run: temporary folders lie in memory where the system has room for them (`/dev/shm` on
 * Linux). A database waits for the disk at each commit, and no file of a test has to survive a power cut. What tests
 * leave behind is removed with the folder.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** `f_type` of tmpfs. */
const TMPFS = 0x01021994;
/** Containers often have 64 MB there; the tests hold a database server and some large files at a time. */
const FREE_BYTES_MIN = 2 * 1024 ** 3;

export default function useMemory(): (() => void) | undefined {
  // A folder that somebody has chosen is used, and so is the one of another project of this run.
  if (process.env["TMPDIR"] !== undefined || !hasRoom()) return undefined;
  const folder = mkdtempSync(join(MEMORY, "headgate-tests-"));
  // As the usual folder: some tests and the database server run as another user.
  chmodSync(folder, 0o1777);
  process.env["TMPDIR"] = folder;
  return () => {
    delete process.env["TMPDIR"];
    rmSync(folder, { recursive: true, force: true });
  };
}

function hasRoom(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { type, bavail, bsize } = statfsSync(MEMORY);
  return type === TMPFS && bavail * bsize >= FREE_BYTES_MIN;
}
