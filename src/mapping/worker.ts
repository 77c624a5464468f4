/** A worker thread of the pool: maps one file at a time. It owns no ledger, no clock and no network. */
import type { MessagePort } from "node:worker_threads";
import { ConfigError, TransientError } from "../support/errors.ts";
import { loadMapper } from "./load-mapper.ts";
import { mapFile, reasonOf } from "./map-file.ts";
import { digestMapper } from "./mapper-files.ts";
import type { MapResult } from "./mapping.ts";
import type { WorkerAnswer, WorkerNotice, WorkerTask } from "./messages.ts";
import { createSegment } from "./segment-writer.ts";

/** The name that the pool calls. */
export async function mapTask({ job, modulePath, port }: WorkerTask): Promise<WorkerAnswer> {
  const notify = (notice: WorkerNotice) => port.postMessage(notice);
  notify({ kind: "started" });
  captureConsole(notify);
  try {
    return await mapJob(job, modulePath, notify);
  } catch (thrown) {
    if (thrown instanceof TransientError)
      return { kind: "transient", code: thrown.code, message: thrown.message };
    throw thrown;
  } finally {
    closeSoon(port);
  }
}

async function mapJob(
  job: WorkerTask["job"],
  modulePath: string,
  notify: (notice: WorkerNotice) => void,
): Promise<WorkerAnswer> {
  const { mapper: identity, settings, rows, limits } = job.binding;
  // Between the pool's look and this one the module may have changed.
  if ((await digestMapper(modulePath)) !== identity.digest)
    return failed("HG-MAP-002", `the mapper ${identity.name} is not the one that this run was made with`);
  try {
    const mapper = await loadMapper(modulePath, identity.digest);
    const result = await mapFile({
      inputPath: job.inputPath,
      fileName: job.fileName,
      filePath: job.filePath,
      mapper,
      settings,
      rows,
      limits,
      lookups: job.lookups,
      sink: createSegment(job.segmentPath),
      // The pool cancels by ending the thread, which needs nobody's help.
      signal: new AbortController().signal,
      log: {
        info: (message) => notify({ kind: "log", level: "info", message: String(message) }),
        warn: (message) => notify({ kind: "log", level: "warn", message: String(message) }),
      },
    });
    return { kind: "result", result };
  } catch (thrown) {
    if (thrown instanceof ConfigError) return failed("HG-MAP-003", thrown.message);
    throw thrown;
  }
}

function failed(code: "HG-MAP-002" | "HG-MAP-003", message: string): WorkerAnswer {
  const result: MapResult = {
    status: "failed",
    reason: reasonOf(code, message),
    rejected: [],
    rejectedCount: 0,
  };
  return { kind: "result", result };
}

/** What a mapper writes to the console goes to the log: standard output belongs to the command that runs. */
function captureConsole(notify: (notice: WorkerNotice) => void): void {
  const write =
    (level: "info" | "warn") =>
    (...values: unknown[]) =>
      notify({ kind: "log", level, message: values.map(String).join(" ") });
  Object.assign(console, {
    log: write("info"),
    info: write("info"),
    debug: write("info"),
    warn: write("warn"),
    error: write("warn"),
  });
}

function closeSoon(port: MessagePort): void {
  // After the messages that are on their way.
  setImmediate(() => port.close());
}
