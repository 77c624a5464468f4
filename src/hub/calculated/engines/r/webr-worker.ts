/**
 * The process in which scripts run on webR, one after the other (`webr-process.ts` starts it and says with which
 * rights). Frames on its standard input are inputs; its answers are frames on standard output. A second thread ends it
 * with the hub; the right to start threads is given up before the first script.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { besideModule } from "#core/threads/beside.ts";
import { confineThread } from "#core/threads/rights.ts";
import { ANSWERS, FrameReader, headOf, type WorkerStart } from "./webr-frames.ts";
import { RuntimeR } from "./webr-runtime.ts";

const { folder, limits } = JSON.parse(process.argv[2] ?? "{}") as WorkerStart;

function end(): void {
  process.kill(process.pid, "SIGKILL");
}

function answer(kind: number, body: Uint8Array, sent?: () => void): void {
  process.stdout.write(headOf(kind, body));
  process.stdout.write(body, sent);
}

function perform(runtime: RuntimeR, input: Uint8Array): void {
  const ended = runtime.run(input);
  if (ended.end === "crash") answer(ANSWERS.crash, Buffer.from(ended.words), end);
  else if (ended.isReusable) answer(ANSWERS.result, ended.bytes);
  else answer(ANSWERS.lastResult, ended.bytes, end);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
for (const event of ["end", "close", "error"] as const) process.stdin.on(event, end);
const watchdog = new Worker(besideModule(import.meta.url, "webr-watchdog"));
watchdog.unref();
watchdog.on("error", end);
const watching = once(watchdog, "message");
const runtime = await RuntimeR.start(folder, limits);
await watching;
await confineThread("a script");
process.permission.drop("worker");
const reader = new FrameReader(Number.MAX_SAFE_INTEGER);
process.stdin.on("data", (chunk: Buffer) => {
  const frame = reader.next(chunk);
  if (frame !== null) perform(runtime, frame.body);
});
answer(ANSWERS.ready, Buffer.alloc(0));
