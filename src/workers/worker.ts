/**
 * The process that mappers run in: does one thing at a time, as its parent asks. It owns no ledger, no clock and no network.
 *
 * Whatever a mapper does here ends at most this process. The parent limits its time and memory from outside; here is only
 * what the parent cannot see: faults that nobody awaits, what a mapper leaves behind, and the end of the parent itself.
 */
import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import { authorFrames } from "../mapping/author-frames.ts";
import { CappedLog, logText, type WriteLine } from "../mapping/capped-log.ts";
import { loadMapper } from "../mapping/load-mapper.ts";
import type { Mapper } from "../mapping/mapper.ts";
import { digestMapper } from "../mapping/mapper-files.ts";
import { shorten } from "../mapping/rejections.ts";
import { settingsFault } from "../mapping/settings.ts";
import { ConfigError, TransientError, wordsOf } from "../support/errors.ts";
import { returnCache } from "./compiled-modules.ts";
import { factsOf } from "./mapper-facts.ts";
import type {
  ChildAnswer,
  ChildCancel,
  ChildMessage,
  ChildRequest,
  ChildStart,
  MapperModule,
} from "./messages.ts";
import { mapAlone, mapList, printable } from "./worker-jobs.ts";

/** Between two looks at the parent and the memory, in milliseconds. */
const WATCH_MS = 250;

/** Its own, before a mapper can touch them. */
const kill = process.kill.bind(process);
const resourcesInUse = process.getActiveResourcesInfo.bind(process);
const currentFolder = process.cwd.bind(process);
const { pid } = process;

/** Written before a child ends for its memory where nobody outside can measure it. */
export const MEMORY_MARK = "headgate: over the limit of memory";

function end(): void {
  kill(pid, "SIGKILL");
}

/** Takes the channel to the parent away from mappers, so that nothing but this module speaks for the process. */
function takeChannel(): (message: ChildMessage, sent?: () => void) => void {
  const send = process.send?.bind(process);
  if (send === undefined) throw new Error("this module runs in a process that the gateway starts");
  Object.assign(process, { send: undefined, disconnect: undefined });
  // What cannot be sent has nobody to be sent to: the process ends by `disconnect`.
  return (message, sent) => void send(message, undefined, undefined, () => sent?.());
}

/**
 * A thread that a mapper cannot keep busy: it ends the process when the parent has gone, and, where the parent cannot measure
 * it, when it holds too much memory. As text, since a thread takes twice as long to start with a module.
 */
function watchFromWithin(parent: number, bytesMax: number): Promise<void> {
  const program = `
    const { writeSync } = require("node:fs");
    const parentLives = () => { try { return process.ppid === ${parent} && process.kill(${parent}, 0); } catch { return false; } };
    setInterval(() => {
      const over = process.memoryUsage.rss() > ${bytesMax};
      if (over) writeSync(2, "${MEMORY_MARK}\\n");
      if (over || !parentLives()) process.kill(process.pid, "SIGKILL");
    }, ${WATCH_MS});`;
  const thread = new Worker(program, { eval: true, env: {}, execArgv: [] });
  thread.unref();
  return new Promise((resolve, reject) => {
    thread.once("online", resolve);
    thread.once("error", reject);
  });
}

/** Mappers cannot reach other processes: 0 and negative numbers stand for groups, the gateway's own among them. */
function confineKill(): void {
  const raw = Reflect.get(process, "_kill") as (target: number, signal: number) => number;
  const confined = (target: number) => {
    if (target !== pid) throw new Error("a mapper may not send signals to other processes");
  };
  process.kill = (target, signal) => {
    confined(target);
    return kill(target, signal);
  };
  Object.assign(process, {
    _kill: (target: number, signal: number) => {
      confined(target);
      return raw(target, signal);
    },
    _debugProcess: confined,
  });
}

/** What a mapper prints goes to the log. */
function captureOutput(log: Pick<CappedLog, "add">): void {
  const write =
    (level: "info" | "warn") =>
    (...values: unknown[]) =>
      log.add(level, logText(values));
  Object.assign(console, {
    log: write("info"),
    info: write("info"),
    debug: write("info"),
    warn: write("warn"),
    error: write("warn"),
  });
  for (const stream of [process.stdout, process.stderr]) {
    stream.write = (chunk: unknown) => {
      log.add("info", chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : logText([chunk]));
      return true;
    };
  }
}

const loaded = new Map<string, Mapper>();

function keyOf({ modulePath, digest }: MapperModule): string {
  return `${modulePath}?${digest}`;
}

/** The mapper of exactly this version. Once it is loaded, it stays so whatever becomes of its files. */
async function exactMapper({ modulePath, digest, origin }: MapperModule): Promise<Mapper> {
  const key = keyOf({ modulePath, digest });
  const known = loaded.get(key);
  if (known !== undefined) return known;
  if ((await digestMapper(modulePath)) !== digest)
    throw new ConfigError("HG-MAP-002", { operation: "load mapper", subject: modulePath });
  const mapper = await loadMapper(modulePath, digest, origin);
  loaded.set(key, mapper);
  return mapper;
}

/** A mapper that comes with Headgate is taken from where it came with it: as trustworthy, and compiled before as all the rest is. */
async function takeOwn({ modulePath, digest, origin = modulePath }: MapperModule): Promise<void> {
  loaded.set(keyOf({ modulePath, digest }), await exactMapper({ modulePath: origin, digest }));
}

/** `begin` makes a log, and what is printed from then on goes there. `isClean`: no mapper has left anything behind. */
async function answer(
  request: ChildRequest,
  signal: AbortSignal,
  log: CappedLog,
  begin: (write: WriteLine) => CappedLog,
  isClean: () => boolean,
): Promise<ChildAnswer> {
  try {
    const mapper = await exactMapper(request);
    switch (request.kind) {
      case "map": {
        const { job, partPath } = request;
        return { kind: "mapped", result: await mapAlone(job, partPath, mapper, signal, log) };
      }
      case "map list":
        return await mapList(request, mapper, signal, begin, isClean);
      case "describe":
        return { kind: "facts", facts: factsOf(mapper) };
      case "settings":
        return { kind: "checked", fault: settingsFault(mapper, request.settings) };
      case "case":
        return { kind: "checked", fault: await caseFault(request) };
    }
  } catch (thrown) {
    if (thrown instanceof TransientError)
      return { kind: "transient", code: thrown.code, message: thrown.message };
    if (thrown instanceof ConfigError)
      return { kind: "unusable", code: thrown.code, message: thrown.message };
    throw thrown;
  }
}

async function caseFault(request: Extract<ChildRequest, { kind: "case" }>): Promise<string | null> {
  try {
    // What cases need takes as long to load as all the rest, and a process that maps files needs none of it.
    const { runCase } = await import("../authoring/cases.ts");
    const { actual, expected } = await runCase(request.modulePath, request.name, request.casesOf);
    if (isDeepStrictEqual(actual, expected)) return null;
    return `expected ${jsonWords(expected)}, but found ${jsonWords(actual)}`;
  } catch (thrown) {
    return wordsOf(thrown);
  }
}

function jsonWords(value: unknown): string {
  return shorten(JSON.stringify(value) ?? "nothing");
}

/** Kinds of what is in use, with how often; without what reads and closes files or writes to the parent, which ends by itself. */
function inUse(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of resourcesInUse())
    if (!/^(?:FSReq|CloseReq|Immediate|MessagePort|PipeWrap|(?:Simple)?WriteWrap)/.test(kind))
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

function serve(send: ReturnType<typeof takeChannel>): void {
  const notify = (level: "info" | "warn", message: string) => send({ kind: "log", level, message });
  let log: CappedLog;
  const begin = (write: WriteLine) => {
    log = new CappedLog(write);
    return log;
  };
  begin(notify);
  captureOutput({ add: (level, message) => log.add(level, message) });
  const folder = currentFolder();
  const before = inUse();
  const left = () => [
    ...[...inUse()].flatMap(([kind, count]) => (count > (before.get(kind) ?? 0) ? [kind] : [])),
    ...(currentFolder() === folder ? [] : ["another working folder"]),
  ];
  const fault = (thrown: unknown) => send({ kind: "fault", words: shorten(faultWords(thrown)) }, end);
  let cancel = new AbortController();

  async function take(request: ChildRequest): Promise<void> {
    cancel = new AbortController();
    const given = await answer(request, cancel.signal, begin(notify), begin, () => left().length === 0);
    // A rejection that nobody awaits shows now, and belongs to this request.
    await new Promise((resolve) => setImmediate(resolve));
    log.end();
    send({ kind: "answer", answer: given, left: left() });
  }

  process.on("message", (message: ChildRequest | ChildCancel) => {
    if (message.kind === "cancel") cancel.abort();
    else take(message).catch(fault);
  });
  process.on("uncaughtException", fault);
  process.on("unhandledRejection", fault);
}

/** With the author's own line, which tells more than the words alone. */
function faultWords(thrown: unknown): string {
  try {
    const [at] = authorFrames(thrown, 1);
    return at === undefined ? printable(thrown) : `${printable(thrown)} (${at})`;
  } catch {
    return printable(thrown);
  }
}

const send = takeChannel();
// A terminal and a service manager tell the whole group to stop; here the parent decides when.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.on("disconnect", end);
confineKill();
const { parent, bytesMax, cache, own } = JSON.parse(process.argv[2] ?? "{}") as ChildStart;
await watchFromWithin(parent, bytesMax);
// A thread of a mapper's own would have signals that are not confined. Absent when the process was started without permissions.
if (process.permission !== undefined) process.permission.drop("worker");
// What is wrong with it is said when it is asked for.
if (own !== null) await takeOwn(own).catch(() => undefined);
if (cache !== null) returnCache(cache);
serve(send);
send({ kind: "ready", bytes: process.memoryUsage.rss() });
