/** Entries as clients list them. */
import type { Entry } from "./file-tree.ts";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MODES = { file: "-rw-r--r--", folder: "drwxr-xr-x", link: "lrwxrwxrwx" } as const;
const HALF_YEAR_MS = 180 * 86_400_000;

/** A line as `ls -l` writes it, in UTC. */
export function unixLine({ name, kind, size, modifiedMs }: Entry, nowMs: number): string {
  const time = new Date(modifiedMs);
  const two = (part: number) => String(part).padStart(2, "0");
  const isRecent = modifiedMs <= nowMs && nowMs - modifiedMs < HALF_YEAR_MS;
  const hour = isRecent ? `${two(time.getUTCHours())}:${two(time.getUTCMinutes())}` : ` ${time.getUTCFullYear()}`;
  const when = `${MONTHS[time.getUTCMonth()]} ${String(time.getUTCDate()).padStart(2)} ${hour}`;
  const mode = MODES[kind];
  return `${mode} 1 sender account ${String(size).padStart(12)} ${when} ${name}`;
}
