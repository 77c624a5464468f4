/**
 * The service is away while small files keep coming, and then it is back: what that does to the memory of the
 * gateway and to the disk of its spool, and how what piled up is drained. Several files bring the readings of
 * one meter, so that their order counts.
 */
import { linkSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "./child.ts";
import { answerRow, count, inFolder, linkFiles, print, writeFiles } from "./delivery-field.ts";
import { type GatewayAnswer, runGateway } from "./delivery-gateway.ts";
import type { SinkAnswer } from "./delivery-sink.ts";
import { writeMeterDay } from "./mapping-data.ts";

const FILES = 1_000;
const METERS = 50;
/** Files lie there when the gateway starts; the others come a few at a time. */
const FIRST = 200;
const COMING = { files: 10, everyMs: 100 };
const AWAY_MS = 20_000;
/** Less than what the files become, so that some have to stay at the drop. */
const BUDGET = 8_000_000;
/** Readings a second. */
const DRAIN_RATE = 9_600;
const LOOK_MS = 200;

export async function benchOutage(url: string): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, FILES, (path, index) => writeMeterDay(path, index % METERS));
    const usual = await usualRun(url, folder, files);
    rmSync(join(folder, "state"), { recursive: true });
    const port = await freePort();
    const settings = { push: { drainRate: DRAIN_RATE }, spool: { budget: `${BUDGET}B` } };
    const spool = watchSpool(join(folder, "state/spool"));
    const running = runGateway({ folder, url: `http://127.0.0.1:${port}/accept`, ...settings });
    const sink = await comeAndReturn(running, folder, files, port);
    try {
      const seen = await running;
      const { points, cpu } = await count(sink.answer.url);
      if (seen.runs["accepted"] !== FILES || points !== seen.points)
        throw new Error(`not all arrived: ${JSON.stringify({ ...seen, points })}`);
      print(answerRow(`${FILES} files, ${AWAY_MS / 1e3} s away`, seen, cpu));
      tell(seen, usual, spool.stop(), drainOf(join(folder, "state/ledger.sqlite")));
    } finally {
      spool.stop();
      await sink.stop();
    }
  });
}

async function usualRun(url: string, folder: string, files: string): Promise<GatewayAnswer> {
  linkFiles(files, join(folder, "drop"));
  const seen = await runGateway({ folder, url: `${url}/accept` });
  print(answerRow(`${FILES} files, service there`, seen, (await count(url)).cpu));
  return seen;
}

/** Files come while nobody listens at the port; answers the service that does afterwards. */
async function comeAndReturn(running: Promise<unknown>, folder: string, files: string, port: number) {
  // It is awaited later; meanwhile a fault is no unhandled one.
  running.catch(() => undefined);
  const drop = join(folder, "drop");
  rmSync(drop, { recursive: true, force: true });
  mkdirSync(drop);
  const names = readdirSync(files).sort();
  const put = (some: readonly string[]) => {
    for (const name of some) linkSync(join(files, name), join(drop, name));
  };
  const backAtMs = performance.now() + AWAY_MS;
  put(names.slice(0, FIRST));
  for (let at = FIRST; at < names.length; at += COMING.files) {
    await sleep(COMING.everyMs);
    put(names.slice(at, at + COMING.files));
  }
  await sleep(Math.max(0, backAtMs - performance.now()));
  return await startChild<SinkAnswer>(join(import.meta.dirname, "delivery-sink.ts"), [String(port)]);
}

interface Drain {
  /** Readings a second from the first acceptance to the last. */
  readonly rate: number;
  /** Files of a meter that were accepted before an earlier one. */
  readonly outOfOrder: number;
}

function drainOf(ledger: string): Drain {
  const db = new DatabaseSync(ledger, { readOnly: true });
  try {
    const accepted = db
      .prepare(
        "SELECT runs.path, events.at, runs.accepted FROM events JOIN runs ON runs.id = " +
          "events.run_id WHERE events.what = 'run.accepted' ORDER BY events.id",
      )
      .all();
    const latest = new Map<number, number>();
    let outOfOrder = 0;
    for (const { path } of accepted) {
      const index = Number(/\d+/.exec(String(path))?.[0]);
      if (index < (latest.get(index % METERS) ?? -1)) outOfOrder += 1;
      latest.set(index % METERS, index);
    }
    const times = accepted.map(({ at }) => Date.parse(String(at)));
    const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1e3;
    // The first went before that time began.
    const readings = accepted.slice(1).reduce((sum, { accepted: points }) => sum + Number(points), 0);
    return { rate: readings / seconds, outOfOrder };
  } finally {
    db.close();
  }
}

function tell(seen: GatewayAnswer, usual: GatewayAnswer, spoolBytes: number, drain: Drain): void {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
  print(
    `an outage of ${AWAY_MS / 1e3} s takes ${(seen.peak / usual.peak).toFixed(2)} times the ` +
      "memory of a usual run; not more than 1.25 is wanted",
  );
  print(
    `the spool takes ${megabytes(spoolBytes)} MB of its budget of ${megabytes(BUDGET)} MB at ` +
      `most (${(spoolBytes / BUDGET).toFixed(2)}); not more than 1 is wanted`,
  );
  print(
    `what piled up is drained at ${(drain.rate / DRAIN_RATE).toFixed(2)} times the configured ` +
      `rate of ${DRAIN_RATE} readings a second; 0.9 to 1 is wanted`,
  );
  print(`${drain.outOfOrder} files came before an earlier one of their meter; none is wanted`);
}

/** Bytes of inputs and segments as the budget counts them: the most that were seen, told when it is stopped. */
function watchSpool(root: string): { stop(): number } {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, bytesBelow(join(root, "inputs")) + bytesBelow(join(root, "segments")));
  }, LOOK_MS);
  return {
    stop() {
      clearInterval(timer);
      return most;
    },
  };
}

function bytesBelow(folder: string): number {
  let bytes = 0;
  try {
    for (const item of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!item.isFile()) continue;
      // Runs that were taken in together share a file, which has a name for each.
      const { size, nlink } = statSync(join(item.parentPath, item.name));
      bytes += size / nlink;
    }
  } catch {
    // It is not there yet, or a file has just gone: the next look sees it.
  }
  return bytes;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
