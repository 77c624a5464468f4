/** Starts the process of a mapping host with the rights of a mapper, and describes how it ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { rssOf } from "#core/threads/resident-memory.ts";
import { lendCaches, resolved } from "./compiled-modules.ts";
import type { HostStart, MapperModule } from "./messages.ts";

export interface HostLimits {
  /** Bytes for each thread, beyond the bytes that the host takes before its first task. */
  readonly memory: number;
  /** Tasks at the same time, each in a thread of its own. */
  readonly threads: number;
  /** Folders that mappers may write in, beside the one for temporary files; null for everywhere. */
  readonly writable: readonly string[] | null;
}

const MEBIBYTE = 1024 * 1024;
/** Young generation, code of mappers and delay of the collector, in bytes for each thread. */
export const MEMORY_SLACK = 64 * 1024 * 1024;
/** Signals by which a process is ended from outside: by a person, or by the kernel when memory is short. */
const FROM_OUTSIDE: readonly string[] = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];

export interface HostProcess {
  readonly child: ChildProcess;
  /** Its file descriptor 3, for a `Channel`. */
  readonly socket: Socket;
  /** The links that were lent to it. */
  readonly caches: readonly string[];
}

/** `own` see `HostStart`. */
export function startHost(limits: HostLimits, own: MapperModule | null): HostProcess {
  const writable = limits.writable?.concat(tmpdir()).map(resolved) ?? null;
  const caches = lendCaches(writable, 1 + limits.threads);
  const start: HostStart = {
    parent: process.pid,
    bytesMax: limitFromWithin(limits),
    threads: limits.threads,
    heapMax: Math.max(16, Math.round(limits.memory / MEBIBYTE)),
    caches,
    own,
  };
  const flags = flagsOf([...(writable ?? ["*"]), ...caches.slice(0, 1).map(dirname)]);
  // Not the channel of `fork`: the runtime deserialises whatever a mapper writes there, and fails in the gateway.
  const child = spawn(process.execPath, [...flags, hostModule(), JSON.stringify(start)], {
    env: environment(limits, caches[0]),
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  // Without file descriptors for it, the process was not started.
  const stdio: readonly unknown[] | undefined = child.stdio;
  return { child, socket: (stdio?.[3] ?? new Socket().destroy()) as Socket, caches };
}

function hostModule(): string {
  return fileURLToPath(new URL(`./host-main${extname(import.meta.url)}`, import.meta.url));
}

const YOUNG_MEBIBYTES = 4;

/** No network, no other programs, no native code, and files are written only where they belong. */
function flagsOf(writable: readonly string[]): string[] {
  return [
    // The objects of mappers are short-lived; a larger young generation of each thread costs memory and gains no time
    // (docs/dev/performance-findings.md).
    `--max-semi-space-size=${YOUNG_MEBIBYTES}`,
    "--permission",
    "--allow-fs-read=*",
    ...[...new Set(writable)].map((folder) => `--allow-fs-write=${folder}`),
    // For the threads of the host. Each of them gives up this right before it loads a mapper.
    "--allow-worker",
    "--disable-warning=PERM0006",
  ];
}

/** Node's own threads for calls to the disk, unless there are more threads that map. */
const DISK_THREADS = 4;

/**
 * Threads of one process wait for each other where memory is mapped. So glibc keeps freed buffers for the next ones,
 * up to a limit, instead of a mapping for each (docs/dev/performance-findings.md); other systems ignore these
 * variables.
 */
const ALLOCATOR = {
  MALLOC_MMAP_THRESHOLD_: String(32 * MEBIBYTE),
  MALLOC_TRIM_THRESHOLD_: String(64 * MEBIBYTE),
};

/** Secrets may stand in the gateway's environment: a host receives nothing of it. */
function environment({ threads }: HostLimits, cache: string | undefined): Record<string, string> {
  return {
    ...{ TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir(), TZ: "UTC" },
    ...ALLOCATOR,
    MALLOC_ARENA_MAX: String(Math.max(2, threads)),
    UV_THREADPOOL_SIZE: String(Math.max(DISK_THREADS, threads)),
    ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
  };
}

/** Limit by which the host watches itself where the gateway cannot measure it. */
function limitFromWithin({ memory, threads }: HostLimits): number {
  return rssOf(process.pid) === null ? threads * (memory + 2 * MEMORY_SLACK) : Number.MAX_SAFE_INTEGER;
}

export interface HostExit {
  readonly words: string;
  /** Whether a person or the kernel may have ended it. */
  readonly fromOutside: boolean;
}

export function exitOf(code: number | null, signal: NodeJS.Signals | null): HostExit {
  const by = signal === null ? `exit code ${code}` : signal;
  return { words: `ended its process with ${by}`, fromOutside: FROM_OUTSIDE.includes(signal ?? "") };
}

export function isHeapFull(stderr: string): boolean {
  return /heap out of memory|Reached heap limit|headgate: over the limit of memory/.test(stderr);
}

/** The last message of the runtime, such as why it aborted. */
export function lastWords(stderr: string): string {
  const line = stderr.split("\n").findLast((one) => /^(?:FATAL ERROR|#|Error|\w*Error:)/.test(one));
  return line === undefined ? "" : ` (${line.trim()})`;
}
