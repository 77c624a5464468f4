/**
 * Finds files that another process has open for writing, where the system reports it: on Linux, for the processes
 * that this user may inspect. Other systems report nothing, and neither are processes of other users visible, so that
 * "none" never proves that no process writes.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const PROC = "/proc";
/**
 * How long a scan of all processes is reused: a multiple of its duration, so that it costs a small share, within
 * bounds.
 */
const KEPT = { leastMs: 200, mostMs: 2_000, costs: 50 };
/** Flags of `open` that only a writer has: O_WRONLY and O_RDWR. */
const WRITING = 0o3;

interface Holder {
  readonly process: string;
  readonly descriptor: string;
}

interface Look {
  /**
   * By which processes and descriptors each path is open. How each is open is read for the paths of a question only,
   * since that costs five system calls.
   */
  readonly holders: ReadonlyMap<string, readonly Holder[]>;
  readonly untilMs: number;
}

let latest: Look | null = null;
let running: Promise<Look> | null = null;

/**
 * For each of the files (full paths without symbolic links) the process that has it open for writing, such as
 * `process 4711 (logger)`, or null.
 */
export async function openForWriting(paths: readonly string[]): Promise<readonly (string | null)[]> {
  if (process.platform !== "linux") return paths.map(() => null);
  const { holders } = await scanAll();
  return paths.map((path) => {
    const writer = holders.get(path)?.find((holder) => isOpenForWriting(holder, path));
    return writer === undefined ? null : `process ${writer.process} (${nameOf(writer.process)})`;
  });
}

/** Makes the next call scan all processes, however recent the last scan was. */
export function forgetScan(): void {
  latest = null;
}

async function scanAll(): Promise<Look> {
  if (latest !== null && performance.now() < latest.untilMs) return latest;
  running ??= look().finally(() => {
    running = null;
  });
  latest = await running;
  return latest;
}

async function look(): Promise<Look> {
  const holders = new Map<string, Holder[]>();
  let costMs = 0;
  for (const process of namesIn(PROC)) {
    if (!/^\d+$/.test(process)) continue;
    const begunMs = performance.now();
    for (const descriptor of namesIn(`${PROC}/${process}/fd`)) {
      const path = linkOf(process, descriptor);
      if (path !== null && mayBeInDrop(path)) holders.getOrInsert(path, []).push({ process, descriptor });
    }
    costMs += performance.now() - begunMs;
    // Thousands of descriptors must not block the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const keptMs = Math.min(KEPT.mostMs, Math.max(KEPT.leastMs, costMs * KEPT.costs));
  return { holders, untilMs: performance.now() + keptMs };
}

/** Sockets, pipes and devices are not files of a drop; memory that is mounted below the devices can hold some. */
function mayBeInDrop(path: string): boolean {
  return path.startsWith("/dev/") ? path.startsWith("/dev/shm/") : path.startsWith("/");
}

/** The process may have closed the file since the scan. */
function isOpenForWriting({ process, descriptor }: Holder, path: string): boolean {
  return linkOf(process, descriptor) === path && isForWriting(process, descriptor);
}

function linkOf(process: string, descriptor: string): string | null {
  return orNull(() => readlinkSync(`${PROC}/${process}/fd/${descriptor}`));
}

function isForWriting(process: string, descriptor: string): boolean {
  const info = orNull(() => readFileSync(`${PROC}/${process}/fdinfo/${descriptor}`, "latin1"));
  const flags = /^flags:\s*([0-7]+)/m.exec(info ?? "")?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & WRITING) !== 0;
}

function nameOf(process: string): string {
  return orNull(() => readFileSync(`${PROC}/${process}/comm`, "utf8").trim()) ?? "unknown";
}

/** Empty for a process that has ended, or that this user may not inspect. */
function namesIn(folder: string): readonly string[] {
  return orNull(() => readdirSync(folder)) ?? [];
}

function orNull<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    return null; // The process may have ended meanwhile.
  }
}
