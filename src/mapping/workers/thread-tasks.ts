/** The tasks of a thread of a mapping host: mapping files, and querying a mapper for its facts. */

import { isDeepStrictEqual } from "node:util";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import { authorFrames } from "../author-frames.ts";
import { CappedLog, logText, type WriteLine } from "../capped-log.ts";
import { loadMapper } from "../load-mapper.ts";
import type { Mapper } from "../mapper.ts";
import { digestMapper } from "../mapper-files.ts";
import { type RangeHelper, rangeOf } from "../ranges/ranges.ts";
import { shorten } from "../rejections.ts";
import { presentWork } from "../run-mapper.ts";
import { settingsFault } from "../settings.ts";
import { factsOf } from "./mapper-facts.ts";
import type { FromThread, MapperModule, RangeAnswer, RangeRequest, TaskAnswer, TaskRequest } from "./messages.ts";
import { hasComeLate, mapAlone, mapList, mapRangeOf, printable } from "./thread-jobs.ts";

/** The functions of the thread, before a mapper can change them. */
const endThread = process.exit.bind(process);
const resourcesInUse = process.getActiveResourcesInfo.bind(process);

/** A fault between two files belongs to the one whose mapper began what failed. */
export function watchFaults(): void {
  process.on("uncaughtExceptionMonitor", comesLate);
}

/** Text that a mapper prints is written to the log of its file. */
export function captureOutput(): void {
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

/** The mapper of exactly this version. Once it is loaded, it stays loaded, also when its files change. */
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

/**
 * A mapper that comes with Headgate is loaded from its own place: as trustworthy, and compiled before as all
 * the rest is.
 */
export async function takeOwn({ modulePath, digest, origin = modulePath }: MapperModule): Promise<void> {
  loaded.set(keyOf({ modulePath, digest }), await exactMapper({ modulePath: origin, digest }));
}

/**
 * `begin` makes the log that printed text is written to from then on. `isClean`: no mapper has left resources
 * behind.
 */
async function answer(request: TaskRequest, write: WriteLine, helper: RangeHelper): Promise<TaskAnswer> {
  const fileLog = begin(write);
  try {
    const mapper = await exactMapper(request);
    switch (request.kind) {
      case "map": {
        const { job, partPath } = request;
        return { kind: "mapped", result: await mapAlone(job, partPath, mapper, { log: fileLog, helper }) };
      }
      case "map list":
        return await mapList(request, mapper, begin, () => left().length === 0);
      case "describe":
        return { kind: "facts", facts: factsOf(mapper) };
      case "settings":
        return { kind: "checked", fault: settingsFault(mapper, request.settings) };
      case "case":
        return { kind: "checked", fault: await caseFault(request) };
    }
  } catch (thrown) {
    if (thrown instanceof TransientError) return { kind: "transient", code: thrown.code, message: thrown.message };
    if (thrown instanceof ConfigError) return { kind: "unusable", code: thrown.code, message: thrown.message };
    throw thrown;
  }
}

async function caseFault(request: Extract<TaskRequest, { kind: "case" }>): Promise<string | null> {
  try {
    // The modules of cases are as large as all others, and a thread that maps files needs none of them.
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

/**
 * Resources that are in use, by kind; without those that read and close files or send messages, which end by
 * themselves.
 */
function inUse(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of resourcesInUse())
    if (!/^(?:FSReq|CloseReq|Immediate|MessagePort|PipeWrap|(?:Simple)?WriteWrap)/.test(kind))
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

const before = inUse();

/** Kinds of resources that mappers left behind. */
function left(): string[] {
  const kinds = [...inUse()].flatMap(([kind, count]) => (count > (before.get(kind) ?? 0) ? [kind] : []));
  return hasComeLate() ? [...kinds, "readings that came late"] : kinds;
}

let log = new CappedLog(() => undefined);

function begin(write: WriteLine): CappedLog {
  log = new CappedLog(write);
  return log;
}

/** Asks the host for another thread. */
function helperBy(port: MessagePort, bytesMin: number | undefined): RangeHelper {
  let meet: MessagePort | undefined;
  return {
    rangeOf: (path, size) => rangeOf(path, size, bytesMin),
    ask: (range) => {
      const { port1, port2 } = new MessageChannel();
      meet = port1;
      const asked = new Promise<RangeAnswer>((resolve) => {
        port1.once("message", (answered: RangeAnswer) => resolve(answered));
        // Also when the other thread ends, or there is none.
        port1.once("close", () => resolve(null));
      });
      port.postMessage({ kind: "range", range, meet: port2 } satisfies FromThread, [port2]);
      return asked;
    },
    stop: () => meet?.close(),
  };
}

/**
 * Maps a range for another thread. It ends early when one of the ports is closed: `meet` by that thread, `port` by the
 * host.
 */
export async function performRange(request: RangeRequest, meet: MessagePort, port: MessagePort): Promise<void> {
  const stop = new AbortController();
  for (const one of [meet, port]) one.on("message", () => undefined).once("close", () => stop.abort());
  try {
    const mapper = await exactMapper(request);
    let hasPrinted = false;
    begin(() => {
      hasPrinted = true;
    });
    const answered: RangeAnswer = await mapRangeOf(request.job, request.range, mapper, stop.signal);
    // The other thread prints it.
    meet.postMessage(hasPrinted ? null : answered);
  } finally {
    log.end();
    meet.close();
    port.close();
    if (left().length > 0) endThread(0);
  }
}

/** Performs one task, and reports by the port. A fault that the mapper did not await ends the thread. */
export async function performTask(request: TaskRequest, port: MessagePort): Promise<void> {
  const send = (message: FromThread) => port.postMessage(message);
  const fault = (thrown: unknown) => {
    comesLate(thrown);
    send({ kind: "ended", ended: { end: "fault", words: shorten(faultWords(thrown)) } });
    endThread(1);
  };
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, fault);
  send({ kind: "begun" });
  try {
    const helper = helperBy(port, request.kind === "map" ? request.rangedBytesMin : undefined);
    const given = await answer(request, (level, message) => send({ kind: "log", level, message }), helper);
    // A rejection that the mapper does not await shows now, and belongs to this task.
    await new Promise((resolve) => setImmediate(resolve));
    log.end();
    const kinds = left();
    send({ kind: "ended", ended: { end: "answered", answer: given, left: kinds } });
    // The pool gives the next task to the first thread that is free, which must not be this one.
    if (kinds.length > 0) endThread(0);
  } catch (thrown) {
    fault(thrown);
  }
  for (const event of events) process.off(event, fault);
  port.close();
}

/** Of a file that was mapped before, this is more than the fault of the present one. */
function comesLate(thrown: unknown): void {
  presentWork()?.comesLate(`what it did not await failed (${shorten(faultWords(thrown))})`);
}

/** With the author's own line, which is more useful than the message alone. */
function faultWords(thrown: unknown): string {
  try {
    const [at] = authorFrames(thrown, 1);
    return at === undefined ? printable(thrown) : `${printable(thrown)} (${at})`;
  } catch {
    return printable(thrown);
  }
}
