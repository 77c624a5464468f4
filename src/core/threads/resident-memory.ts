/** The resident memory of a process, measured from outside. */
import { readFileSync, writeFileSync } from "node:fs";

const KIBIBYTE = 1024;

/** Resident bytes of a process; null when it has ended, or where the system does not report them. */
export function rssOf(pid: number | undefined): number | null {
  if (pid === undefined) return null;
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return found === null ? null : Number(found[1]) * KIBIBYTE;
  } catch {
    return null; // It has just ended, or there is no /proc.
  }
}

/** Of 1,000: well above the gateway, below the processes that the kernel would always choose. */
const OOM_SCORE = "500";

/**
 * When the machine runs out of memory, the kernel ends this process before the calling one. False where the
 * system does not support it.
 */
export function preferWhenMemoryIsShort(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, OOM_SCORE);
    return true;
  } catch {
    return false; // It has just ended, or the system does not support it.
  }
}
