/**
 * A mapping host: the process that is the wall around mappers, with a piscina pool of the threads that map. It owns no
 * ledger, no clock and no network, and its main thread loads no mapper: so mappers cannot keep it busy. It starts
 * tasks, forwards what threads report, and ends with the gateway.
 */
import { flushCompileCache } from "node:module";
import { Socket } from "node:net";
import { dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Piscina } from "piscina";
import { wordsOf } from "#core/errors.ts";
import { Channel, receiveSecret } from "./channel.ts";
import { endLoan } from "./compiled-modules.ts";
import type { ThreadTask } from "./host-thread.ts";
import type {
  FromHost,
  FromThread,
  HostStart,
  LateWords,
  TaskEnd,
  TaskRequest,
  ThreadStart,
  ToHost,
} from "./messages.ts";

/** Interval at which the gateway and the memory are checked, in milliseconds. */
const WATCH_MS = 250;
/** A thread without a task ends after this time, in milliseconds; the last one stays. */
const IDLE_MS = 5_000;

/** See `startHost`. */
const CHANNEL_FD = 3;

/** Written before a host ends for its memory where the gateway cannot measure it. */
const MEMORY_MARK = "headgate: over the limit of memory";

const { parent, bytesMax, threads, heapMax, caches, own } = JSON.parse(process.argv[2] ?? "{}") as HostStart;

function end(): void {
  process.kill(process.pid, "SIGKILL");
}

function send(message: FromHost, sent?: () => void): void {
  channel.send(message, sent);
}

/**
 * Ends the process when the gateway has gone, and, where the gateway cannot measure it, when it holds too
 * much memory.
 */
function watch(): void {
  const isOver = process.memoryUsage.rss() > bytesMax;
  if (isOver) process.stderr.write(`${MEMORY_MARK}\n`, end);
  else if (!parentLives()) end();
}

function parentLives(): boolean {
  try {
    return process.ppid === parent && process.kill(parent, 0);
  } catch {
    return false;
  }
}

function startPool(): Piscina<ThreadTask, void> {
  const [cache, ...threadCaches] = caches;
  const start: ThreadStart = { cachesFolder: cache === undefined ? null : dirname(cache), own };
  // Workbooks need the folder for temporary files; the other variables are for the runtime alone.
  const { TMPDIR, TEMP, TMP, TZ } = process.env;
  const pool = new Piscina<ThreadTask, void>({
    filename: fileURLToPath(new URL(`./host-thread${extname(import.meta.url)}`, import.meta.url)),
    name: "perform",
    minThreads: 1,
    maxThreads: threads,
    idleTimeout: IDLE_MS,
    // A thread that waits for its next task still runs what the last one left behind, so that faults show.
    atomics: "disabled",
    workerData: start,
    env: {
      ...{ TMPDIR, TEMP, TMP, TZ },
      // Read for each thread: one that finds no cache in its environment loads the stripper of types for its first
      // module, which takes 14 MB.
      get NODE_COMPILE_CACHE() {
        return threadCaches.shift() ?? "";
      },
    },
    resourceLimits: { maxOldGenerationSizeMb: heapMax },
    // Otherwise the pool moves a waiting task behind the others whenever all threads are busy.
    stricterFIFO: true,
    recordTiming: false,
  });
  const report = () => send({ kind: "threads", count: pool.threads.length });
  pool.on("workerCreate", report);
  // The pool emits this event before it removes the thread.
  pool.on("workerDestroy", () => queueMicrotask(report));
  pool.on("message", ({ runId, file, words }: LateWords) => send({ kind: "late", runId, file, words }));
  // A fault between two tasks.
  pool.on("error", (thrown) => send({ kind: "fault", words: wordsOf(thrown) }));
  return pool;
}

/** The state of a task whose thread has not ended it. */
interface Running {
  readonly abort: AbortController;
  readonly port: MessagePort;
  hasBegun: boolean;
}

const running = new Map<number, Running>();

/** A range that a thread maps. */
interface Helping {
  readonly abort: AbortController;
  readonly port: MessagePort;
}

const ranges = new Set<Helping>();
/** Until the thread of a range that is no longer needed is ended, since its mapper may never return. */
const RANGE_END_MS = 1_000;

/** Frees the threads of ranges for tasks. */
function stopRanges(): void {
  for (const { abort, port } of ranges) {
    port.close();
    setTimeout(() => abort.abort(), RANGE_END_MS).unref();
  }
}

/**
 * A range of a file is mapped by a thread that no file needs. Otherwise, or when it fails, the thread that asked finds
 * its port closed.
 */
async function performRange(
  pool: Piscina<ThreadTask, void>,
  request: TaskRequest,
  { range, meet }: Extract<FromThread, { kind: "range" }>,
): Promise<void> {
  if (request.kind !== "map" || running.size > 1 || ranges.size > 0 || threads < 2) {
    meet.close();
    return;
  }
  const { job, modulePath, digest, origin } = request;
  const { port1, port2 } = new MessageChannel();
  const helping = { abort: new AbortController(), port: port1 };
  ranges.add(helping);
  const ranged = { job, range, modulePath, digest, origin };
  // The types of the library take an object here, and the library itself an array.
  const transferList: object = [meet, port2];
  try {
    await pool.run({ ranged, meet, port: port2 }, { transferList, signal: helping.abort.signal });
  } catch {
    // The thread that asked maps the range itself. No thread may have received its port.
    meet.close();
  } finally {
    port1.close();
    ranges.delete(helping);
  }
}

/** A task has ended when its thread has closed the port, be it because the thread itself ended. */
async function perform(pool: Piscina<ThreadTask, void>, number: number, request: TaskRequest): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const task: Running = { abort: new AbortController(), port: port1, hasBegun: false };
  running.set(number, task);
  let reported: TaskEnd | null = null;
  stopRanges();
  port1.on("message", (message: FromThread) => {
    if (message.kind === "range") {
      void performRange(pool, request, message);
      return;
    }
    if (message.kind === "ended") reported = message.ended;
    else send({ kind: "said", number, words: message });
    task.hasBegun = true;
  });
  const closed = new Promise<void>((resolve) => port1.once("close", resolve));
  let thrown: unknown;
  try {
    // The first thread has a task until then, and another thread would be started for this one.
    await loaded;
    const { signal } = task.abort;
    // The types of the library take an object here, and the library itself an array.
    const transferList: object = [port2];
    await Promise.all([
      pool.run({ request, port: port2 }, { transferList, signal }).catch((reason: unknown) => {
        thrown = reason;
      }),
      closed,
    ]);
  } catch (reason) {
    // The system cannot start a thread. The pool has kept the task, and would perform it later.
    send({ kind: "ended", number, ended: { end: "not started", words: wordsOf(reason) } }, end);
    return;
  }
  running.delete(number);
  stopRanges();
  const ended = task.abort.signal.aborted ? { end: "cancelled" as const } : (reported ?? endOf(thrown));
  send({ kind: "ended", number, ended });
}

/** Ends the thread of a task. */
function cancel(number: number): void {
  const task = running.get(number);
  if (task === undefined) return;
  task.abort.abort();
  // No thread has received the port, and none will.
  if (!task.hasBegun) task.port.close();
}

/** Of a thread that ended without a word. */
function endOf(thrown: unknown): TaskEnd {
  if (thrown instanceof Error && "code" in thrown && thrown.code === "ERR_WORKER_OUT_OF_MEMORY")
    return { end: "memory" };
  const code = /^worker exited with code: (-?\d+)$/.exec(wordsOf(thrown))?.[1];
  if (code !== undefined) return { end: "gone", words: `ended its thread with exit code ${code}` };
  return { end: "fault", words: wordsOf(thrown) };
}

function onMessage(message: ToHost): void {
  if (message.kind === "cancel") cancel(message.number);
  else void perform(pool, message.number, message.request);
}

// A terminal or a service manager signals the whole group; the gateway decides when its hosts end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
const socket = new Socket({ fd: CHANNEL_FD, readable: true, writable: true });
for (const event of ["end", "close", "error"] as const) socket.on(event, end);
setInterval(watch, WATCH_MS);
// Before the pool starts a thread, since threads could read it.
const secret = await receiveSecret(socket);
const channel = new Channel<FromHost, ToHost>(socket, { secret, side: "host" }, onMessage, end);
const pool = startPool();
/** The first thread returns when it is loaded. */
const loaded = pool.run({ request: null, port: null }).then(() => {
  send({ kind: "ready", bytes: process.memoryUsage.rss() });
});
await loaded;
const [cache] = caches;
if (cache !== undefined) {
  flushCompileCache();
  endLoan(cache);
}
