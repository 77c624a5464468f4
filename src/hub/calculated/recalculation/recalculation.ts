/**
 * The main thread's side of recalculation: starts the thread as soon as there is a calculated variable, wakes it, and
 * accepts its outputs as operations, which the thread of ingestion applies as every push.
 */
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { FastifyInstance } from "fastify";
import { Piscina } from "piscina";
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { besideModule } from "#core/threads/beside.ts";
import type { HubOptions } from "../../options.ts";
import type { HubStore } from "../../store/store.ts";
import type { FromThread, HandedPart, RecalculationData, RecalculationTask, RunEnd, ToThread } from "./run.ts";

export interface Recalculation {
  /** Called when something may be due; cheap. */
  wake(): void;
  /** Gives up running calculations, which continue at the next start or on another node. */
  close(): Promise<void>;
}

export interface RecalculationParts {
  readonly options: HubOptions;
  readonly store: Pick<HubStore, "calculated" | "claims" | "operations">;
  readonly ingestion: { wake(): void };
  readonly log: Logger;
  readonly clock: Clock;
  readonly fault: string | null;
  onEnded(end: RunEnd, seconds: number): void;
}

export interface AcceptingParts extends Pick<RecalculationParts, "ingestion" | "clock" | "log"> {
  readonly store: {
    readonly operations: Pick<HubStore["operations"], "accept">;
    readonly claims: Pick<HubStore["claims"], "sent">;
  };
}

const RESTART_MS = 1_000;
/** Another node may define the first calculated variable, and master data comes without a call. */
const LOOK_MS = 10_000;

export function startRecalculation(parts: RecalculationParts): Recalculation {
  const { store, log, clock } = parts;
  const closing = new AbortController();
  let port: MessagePort | null = null;
  let looked = Promise.withResolvers<void>();
  const node = randomUUID();

  /** True as soon as there is a calculated variable; false when the hub ends before. */
  const awaitFirst = async (): Promise<boolean> => {
    while (!closing.signal.aborted) {
      looked = Promise.withResolvers<void>();
      try {
        if (await store.calculated.exists()) return true;
      } catch (thrown) {
        log.warn({ cause: wordsOf(thrown) }, "whether there are calculated variables is not known; asked again");
      }
      const timer = setTimeout(looked.resolve, LOOK_MS);
      await looked.promise;
      clearTimeout(timer);
    }
    return false;
  };

  const watch = async (): Promise<void> => {
    if (!(await awaitFirst())) return;
    while (!closing.signal.aborted) {
      const pool = startPool(parts, node);
      const { port1, port2 } = new MessageChannel();
      const handled = listen(port1, parts);
      port = port1;
      const transferList: object = [port2];
      const running = pool.run({ port: port2 }, { transferList });
      if (closing.signal.aborted) stop(port1);
      try {
        await running;
      } catch (thrown) {
        log.error({ err: thrown }, "the thread of recalculation failed; it is started again");
      }
      port = null;
      port1.close();
      await handled();
      await pool.destroy();
      await clock.sleep(RESTART_MS, closing.signal);
    }
  };
  const watching = watch();

  return {
    wake() {
      looked.resolve();
      const message: ToThread = { type: "wake" };
      port?.postMessage(message);
    },
    async close() {
      closing.abort();
      looked.resolve();
      if (port !== null) stop(port);
      await watching;
    },
  };
}

/** A change of definitions, slices or points makes something due. Pushes do so when they are applied. */
export function wakeAfterChanges(app: FastifyInstance, recalculation: Recalculation): void {
  app.addHook("onResponse", async ({ method, url }, { statusCode }) => {
    if (method !== "GET" && statusCode < 300 && !url.startsWith("/push/")) recalculation.wake();
  });
}

function stop(port: MessagePort): void {
  const message: ToThread = { type: "stop" };
  port.postMessage(message);
}

function startPool({ options, log, fault }: RecalculationParts, node: string): Piscina<RecalculationTask, void> {
  const { store, calculated } = options;
  const workerData: RecalculationData = { store, calculated, node, fault };
  const pool = new Piscina<RecalculationTask, void>({
    filename: fileURLToPath(besideModule(import.meta.url, "worker")),
    name: "recalculate",
    minThreads: 1,
    maxThreads: 1,
    workerData,
    recordTiming: false,
  });
  // The replacement of a thread that failed has no task: its pool is about to end.
  pool.on("error", (thrown) => log.debug({ err: thrown }, "the thread of recalculation failed without a task"));
  return pool;
}

/** Returns what waits until everything that came is handled. */
function listen(port: MessagePort, parts: RecalculationParts): () => Promise<void> {
  const { log, onEnded } = parts;
  let accepting: Promise<void> = Promise.resolve();
  port.on("message", (message: FromThread) => {
    if (message.type === "trouble")
      log.warn({ cause: message.message }, "calculations wait: the store refuses them for now");
    else if (message.type === "part") {
      const { part, handed } = message;
      accepting = accepting.then(async () => {
        const fault = await acceptPart(handed, parts).then(() => null, wordsOf);
        const answer: ToThread = { type: "accepted", part, fault };
        port.postMessage(answer);
      });
    } else {
      const { calculationId, accountId, variableId, end, seconds } = message;
      const facts = { calculationId, accountId, variableId };
      if (end === "failed") log.warn(facts, "a calculation failed (GET /calculations/{id} has the reason)");
      else if (end === "waiting") log.warn(facts, "a calculation waits, and is tried again (GET /calculations/{id})");
      else log.debug({ ...facts, end }, "a calculation ended");
      onEnded(end, seconds);
    }
  });
  return () => accepting;
}

/** No push from outside names this user. */
const SYSTEM_USER = 0;
const TIMEOUT_SEC = 600;

/**
 * A part whose operation was accepted before, by a node that ended then, is only recorded: its end is in the key. Where
 * its rows were others, the inputs have changed since, and are due again.
 */
export async function acceptPart(handed: HandedPart, { store, ingestion, clock, log }: AcceptingParts): Promise<void> {
  const { calculationId, accountId, sent, cursorMs, outputs, dropped, digest, body } = handed;
  const { kind } = await store.operations.accept({
    accountId,
    userId: SYSTEM_USER,
    operationId: `calculation-${calculationId}-${sent + 1}`,
    // A header cannot hold a line break, so that no push has this key.
    idempotencyKey: `calculation\n${calculationId}-${cursorMs}`,
    digest,
    timeoutSec: TIMEOUT_SEC,
    received: outputs,
    webhookUrl: null,
    acceptedMs: clock.now().epochMilliseconds,
    body,
    calculationId,
  });
  faultPoint("hub.calculation.accepted");
  if (kind !== "accepted") log.info({ accountId, calculationId, part: sent + 1, kind }, "a part was accepted before");
  await store.claims.sent(calculationId, sent, { cursorMs, outputs, dropped });
  ingestion.wake();
  faultPoint("hub.calculation.sent");
}
