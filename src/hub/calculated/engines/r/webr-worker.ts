/**
 * The process in which scripts run on webR, one after the other (`webr-process.ts` starts it and says with which
 * rights). Frames on its standard input are inputs; its answers are frames on standard output.
 */
import { confineThread } from "../../../../support/threads/rights.ts";
import { ANSWERS, FrameReader, headOf, type WorkerStart } from "./webr-frames.ts";
import { RuntimeR } from "./webr-runtime.ts";

const { parent, folder, limits } = JSON.parse(process.argv[2] ?? "{}") as WorkerStart;

function end(): void {
  process.kill(process.pid, "SIGKILL");
}

/** Calls between two checks of the parent: R calls thousands of times a second. */
const CALLS = 256;
let calls = 0;

/** A script that never ends also ends with the hub. */
function poll(): void {
  calls += 1;
  if (calls % CALLS === 0 && process.ppid !== parent) end();
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
const runtime = await RuntimeR.start(folder, limits, poll);
await confineThread("a script");
const reader = new FrameReader(Number.MAX_SAFE_INTEGER);
process.stdin.on("data", (chunk: Buffer) => {
  const frame = reader.next(chunk);
  if (frame !== null) perform(runtime, frame.body);
});
answer(ANSWERS.ready, Buffer.alloc(0));
