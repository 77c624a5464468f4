/** The worker pool: one file a thread, within limits of memory and time; whatever a mapper does ends its own run and nothing else. */
import { availableParallelism, tmpdir } from "node:os";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Piscina } from "piscina";
import type { Reason } from "../model.ts";
import { systemClock } from "../support/clock.ts";
import { type ErrorCode, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { searchFolders } from "./catalogue.ts";
import { reasonOf } from "./map-file.ts";
import { digestMapper, locateMapper } from "./mapper-files.ts";
import type { MapJob, MappingPool, MapResult } from "./mapping.ts";
import type { WorkerAnswer, WorkerNotice, WorkerTask } from "./messages.ts";
import type { WorkersOptions } from "./options.ts";

type RunOptions = NonNullable<Parameters<Piscina["run"]>[1]>;

/** Idle workers beyond the first end, since most sites have long pauses between files. */
const IDLE_MS = 30_000;
/** How long workers may take to end, in milliseconds. */
const CLOSE_MS = 5_000;
const MEBIBYTE = 1024 * 1024;

/** `folders` are absolute; the bundled mappers are added. */
export function createMappingPool(
  options: WorkersOptions,
  folders: readonly string[],
  log: Logger,
): MappingPool {
  const places = searchFolders(folders);
  let closing = false;
  const pool = new Piscina<WorkerTask, WorkerAnswer>({
    filename: fileURLToPath(new URL(`./worker${extname(import.meta.url)}`, import.meta.url)),
    name: "mapTask",
    // One at least: piscina starts no worker for what waits after it ended the last one.
    minThreads: 1,
    maxThreads: options.count === "auto" ? availableParallelism() : options.count,
    idleTimeout: IDLE_MS,
    atomics: "disabled",
    resourceLimits: { maxOldGenerationSizeMb: Math.max(16, Math.round(options.memory / MEBIBYTE)) },
    execArgv: [],
    env: temporaryDirectoryOnly(),
  });
  // A worker that fails between two files: what a mapper left behind, after its run had ended.
  pool.on("error", (thrown: unknown) =>
    log.warn({ fault: wordsOf(thrown) }, "a mapping worker failed while idle"),
  );

  async function run(job: MapJob, modulePath: string, signal: AbortSignal): Promise<MapResult> {
    const { port1, port2 } = new MessageChannel();
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort, { once: true });
    const watch = watchNotices(port1, job, log, options.timeLimit, abort);
    try {
      const task = { job, modulePath, port: port2 };
      // Piscina takes the type of the list from an older signature of `postMessage`.
      const transferList = [port2] as unknown as NonNullable<RunOptions["transferList"]>;
      const answer = await pool.run(task, { signal: stop.signal, transferList });
      if (answer.kind === "result") return answer.result;
      throw transient(answer.code, job, answer.message);
    } catch (thrown) {
      if (thrown instanceof TransientError) throw thrown;
      if (signal.aborted || closing) throw transient("HG-MAP-013", job, "mapping was cancelled", thrown);
      return failed(
        watch.timedOut() ? timeReason(job, options.timeLimit) : crashReason(thrown, job, options.memory),
      );
    } finally {
      signal.removeEventListener("abort", abort);
      watch.end();
    }
  }

  return {
    async map(job, signal) {
      if (signal.aborted || closing) throw transient("HG-MAP-013", job, "mapping was cancelled");
      const { name, digest } = job.binding.mapper;
      const modulePath = await locateMapper(places, name);
      if (modulePath === null) return failed(reasonOf("HG-MAP-001", `there is no mapper ${name}`));
      if ((await digestMapper(modulePath)) !== digest)
        return failed(
          reasonOf("HG-MAP-002", `the mapper ${name} is not the one that this run was made with`),
        );
      return await run(job, modulePath, signal);
    },
    async close() {
      closing = true;
      // A thread that cannot be ended now must not keep the gateway from closing its ledger.
      const deadline = new AbortController();
      const late = systemClock.sleep(CLOSE_MS, deadline.signal).then((passed) => {
        if (passed) log.warn({ waitedMs: CLOSE_MS }, "a mapping worker did not end in time");
      });
      await Promise.race([pool.destroy(), late]);
      deadline.abort();
    },
  };
}

/** Listens to a worker: its log lines, and its start, from which the time limit counts. */
function watchNotices(port: MessagePort, job: MapJob, log: Logger, limitMs: number, abort: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let timedOut = false;
  port.on("message", (notice: WorkerNotice) => {
    if (notice.kind === "log") {
      log[notice.level](
        { run: job.runId, file: job.filePath, mapper: job.binding.mapper.name },
        notice.message,
      );
      return;
    }
    timer ??= setTimeout(() => {
      timedOut = true;
      abort();
    }, limitMs);
  });
  return {
    timedOut: () => timedOut,
    end() {
      clearTimeout(timer);
      // Lines that were sent before the answer are delivered first.
      setImmediate(() => port.close());
    },
  };
}

function failed(reason: Reason): MapResult {
  return { status: "failed", reason, rejected: [], rejectedCount: 0 };
}

function timeReason(job: MapJob, limitMs: number): Reason {
  return reasonOf("HG-MAP-009", `the mapper ${job.binding.mapper.name} took longer than ${limitMs / 1000} s`);
}

function crashReason(thrown: unknown, job: MapJob, memory: number): Reason {
  const { name } = job.binding.mapper;
  if (systemCode(thrown) === "ERR_WORKER_OUT_OF_MEMORY")
    return reasonOf(
      "HG-MAP-010",
      `the mapper ${name} took more than ${Math.round(memory / 1e6)} MB of memory`,
    );
  return reasonOf("HG-MAP-011", `the worker of the mapper ${name} ended: ${wordsOf(thrown)}`);
}

function transient(code: ErrorCode, job: MapJob, message: string, cause?: unknown): TransientError {
  return new TransientError(code, { operation: "map file", subject: job.filePath, message, cause });
}

/** Mappers see nothing of the environment, where secrets may stand; workbooks need the directory for temporary files. */
function temporaryDirectoryOnly(): Record<string, string> {
  return { TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir() };
}
