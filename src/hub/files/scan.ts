/**
 * The virus scan of stored files: a program of the operator that reads each file before any trigger may claim it. It
 * is run without a shell, and none of its arguments comes from a client.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { systemCode, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import type { HubOptions } from "../options.ts";
import type { FileRecord, FileStore, ScanVerdict } from "../store/stored-files.ts";
import { BlobMissing, type BlobStore } from "./blobs.ts";

export type ScanOptions = NonNullable<HubOptions["files"]["scan"]>;

/** Also for files that another hub took before it ended. */
const AGAIN_MS = 60_000;
/** In arguments of the command: the path of a file with the content, which otherwise comes on standard input. */
const PATH_MARK = "{file}";
const OUTPUT_BYTES_MAX = 4_096;
const REASON_CHARACTERS_MAX = 300;
/** The variables of the hub hold its secrets. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };

export interface Scans {
  /** A file waits. */
  wake(): void;
  /** Ends running scans; their files wait for the next start. */
  close(): Promise<void>;
}

interface Parts {
  readonly options: ScanOptions;
  readonly blobs: BlobStore;
  readonly store: FileStore;
  readonly log: Logger;
  readonly clock: Clock;
  /** A file of this account may be claimed now. */
  readonly onClean: (accountId: number) => void;
}

export function startScans(parts: Parts): Scans {
  const closing = new AbortController();
  let waking = new AbortController();
  const warn = createRareWarning(parts.log, "scan", "the virus scan of a file did not work; it is tried again");
  const running = new Map<FileRecord, Promise<void>>();
  const most = parts.options.concurrency;
  const turns = new ScanTurns(parts.store, most);
  const begin = (file: FileRecord) => {
    const scanned = scanOne(parts, file, closing.signal).catch((thrown: unknown) => {
      if (!closing.signal.aborted) warn({ id: file.id, why: wordsOf(thrown) });
    });
    running.set(
      file,
      scanned.finally(() => running.delete(file)),
    );
  };
  /** A scan that hangs holds no other file back, not even one that comes meanwhile. */
  const pass = async (woken: AbortSignal) => {
    const tried = new Map<number, number>();
    const wakes = new Promise<void>((resolve) => woken.addEventListener("abort", () => resolve(), { once: true }));
    while (!closing.signal.aborted) {
      const file = running.size < most ? await turns.next([...running.keys()], tried) : "later";
      if (file === null) return;
      if (file !== "later") begin(file);
      else if (woken.aborted && running.size < most) return;
      else await Promise.race(running.size < most ? [...running.values(), wakes] : running.values());
    }
  };
  const run = async () => {
    while (!closing.signal.aborted) {
      waking = new AbortController();
      try {
        await pass(waking.signal);
      } catch (thrown) {
        parts.log.error({ err: thrown }, "files could not be scanned; this is tried again");
      }
      await parts.clock.sleep(AGAIN_MS, AbortSignal.any([waking.signal, closing.signal]));
    }
    await Promise.all(running.values());
  };
  const ended = run();
  return {
    wake: () => waking.abort(),
    async close() {
      closing.abort();
      await ended;
    },
  };
}

/** The accounts take turns. */
class ScanTurns {
  readonly #store: FileStore;
  /** Scans of one account that hang leave a place for the others, where a single one leaves two for its account. */
  readonly #mostOfOne: number;
  /** The account of the last scan. */
  #last = 0;

  constructor(store: FileStore, most: number) {
    this.#store = store;
    this.#mostOfOne = most > 2 ? most - 1 : most;
  }

  /** `tried`: the last file of each account in this pass. "later": only accounts without a place have one. */
  async next(running: readonly FileRecord[], tried: Map<number, number>): Promise<FileRecord | "later" | null> {
    const accounts = await this.#store.unscannedAccounts();
    const after = accounts.findIndex((id) => id > this.#last);
    const inTurn = after < 0 ? accounts : [...accounts.slice(after), ...accounts.slice(0, after)];
    let found: "later" | null = null;
    for (const account of inTurn) {
      const own = running.filter(({ accountId }) => accountId === account);
      const file = await this.#untried(account, own, tried);
      if (file === null) continue;
      if (own.length < this.#mostOfOne) {
        tried.set(account, file.id);
        this.#last = account;
        return file;
      }
      found = "later";
    }
    return found;
  }

  async #untried(account: number, own: readonly FileRecord[], tried: Map<number, number>): Promise<FileRecord | null> {
    for (;;) {
      const file = await this.#store.unscanned(account, tried.get(account) ?? 0);
      if (file === null || !own.some(({ id }) => id === file.id)) return file;
      tried.set(account, file.id);
    }
  }
}

/** Throws when there is no verdict. */
async function scanOne(parts: Parts, file: FileRecord, signal: AbortSignal): Promise<void> {
  const { store, clock, log, onClean } = parts;
  try {
    const verdict = await scan(parts, file, signal);
    await store.scanned(file.accountId, file.id, verdict, clock.now().epochMilliseconds);
    if (verdict.kind === "clean") onClean(file.accountId);
    else log.warn({ id: file.id, account: file.accountId, reason: verdict.reason }, "a stored file is infected");
  } catch (thrown) {
    // A file that was removed meanwhile has no bytes.
    if (thrown instanceof BlobMissing && (await store.one(file.accountId, file.id)) === null) return;
    throw thrown;
  }
}

/** Throws when the program gave no verdict. */
async function scan({ options, blobs }: Parts, file: FileRecord, signal: AbortSignal): Promise<ScanVerdict> {
  const byPath = options.command.some((part) => part.includes(PATH_MARK));
  const local = byPath ? await blobs.local(file.sha256) : null;
  const content = byPath ? null : await blobs.read(file.sha256);
  try {
    const [program = "", ...given] = options.command;
    const path = local?.path ?? "";
    const { code, output } = await ran(
      program,
      given.map((part) => part.replaceAll(PATH_MARK, path)),
      content,
      AbortSignal.any([signal, AbortSignal.timeout(options.timeout)]),
    );
    if (code === 0) return { kind: "clean" };
    const words = (path === "" ? output : output.replaceAll(path, file.fileName)).trim().replaceAll(/\s+/g, " ");
    if (code === 1) return { kind: "infected", reason: reasonOf(words) };
    throw new Error(`the command ended with ${code}: ${words.slice(0, REASON_CHARACTERS_MAX)}`);
  } finally {
    // A scan that is ended before its program starts has read nothing of it.
    content?.destroy();
    await local?.end();
  }
}

function reasonOf(words: string): string {
  const found = words.slice(0, REASON_CHARACTERS_MAX);
  return `the virus scan found it infected${found === "" ? "" : `: ${found}`}`;
}

async function ran(program: string, given: readonly string[], content: Readable | null, signal: AbortSignal) {
  signal.throwIfAborted();
  const stdin = content === null ? "ignore" : "pipe";
  // With a process group of its own, the programs that it starts end with it.
  const child = spawn(program, given, { env: ENVIRONMENT, stdio: [stdin, "pipe", "pipe"], detached: true });
  const end = () => {
    endGroup(child.pid);
    for (const stream of child.stdio) stream?.destroy();
  };
  signal.addEventListener("abort", end);
  let output = "";
  const collect = (chunk: Buffer) => {
    if (output.length < OUTPUT_BYTES_MAX) output += chunk.toString("utf8");
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const closed = once(child, "close");
  const fed = content === null || child.stdin === null ? undefined : pipeline(content, child.stdin);
  const [ended, sent] = await Promise.allSettled([closed, fed]);
  signal.removeEventListener("abort", end);
  signal.throwIfAborted();
  if (ended.status === "rejected") throw ended.reason;
  const [code, killed] = ended.value as [number | null, NodeJS.Signals | null];
  // A program may decide before it has read everything.
  const isCut = sent.status === "rejected" && !["EPIPE", "ERR_STREAM_PREMATURE_CLOSE"].includes(codeOf(sent.reason));
  if (isCut) throw sent.reason;
  if (killed !== null) throw new Error(`the command was ended by ${killed}`);
  return { code, output };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (thrown) {
    // It has ended.
    if (systemCode(thrown) !== "ESRCH") throw thrown;
  }
}

function codeOf(thrown: unknown): string {
  return systemCode(thrown) ?? "";
}
