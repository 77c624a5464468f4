/**
 * From the drop to the last acceptance, beside a plain script that posts the same files to the same counting
 * service (no durability, no order, nothing sent again). The gateway is the real command: synced, in the
 * ledger, with its mappers in processes of their own. The service tells no outcomes and is not asked for its
 * structure.
 */
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startChild } from "./child.ts";
import { answerRow, count, inFolder, linkFiles, print, row, writeFiles } from "./delivery-field.ts";
import { type GatewayAnswer, runGateway } from "./delivery-gateway.ts";
import { runMigrate } from "./delivery-migrate.ts";
import { benchOutage } from "./delivery-outage.ts";
import type { PlainAnswer } from "./delivery-plain.ts";
import type { SinkAnswer } from "./delivery-sink.ts";
import { writeMeterDay, writeStandardCsv } from "./mapping-data.ts";
import { medianOf } from "./median.ts";

const ROWS = Number(process.env["HEADGATE_BENCH_ROWS"] ?? 1_000_000);
const FILES = Number(process.env["HEADGATE_BENCH_FILES"] ?? 2_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 2);
/** Of fewer rounds the middle one says little. */
const ROUNDS_MEDIAN = 3;
const KNOWN_FILES = 10_000;
/** Of `one`, `four`, `small`, `large`, `migrate`, `idle`, `hostile` and `outage`. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",");
const SETTLE_MS = 15_000;
const IDLE_MS = 60_000;
const HOSTILE_FILES = 1_000;
const HOSTILE_MS = 25_000;
/** No service listens there. */
const NOBODY = "http://127.0.0.1:9";
const LARGER = 5;

export async function benchDelivery(): Promise<void> {
  const sink = await startChild<SinkAnswer>(join(import.meta.dirname, "delivery-sink.ts"), []);
  const { url } = sink.answer;
  try {
    print(`delivery: ${ROUNDS} rounds; seconds from the first poll to the last acceptance, and to the end; megabytes`);
    print(row("", "wall", "to the end", "CPU", "mappers", "sink", "peak", "together"));
    const standard = (path: string) => writeStandardCsv(path, { rows: ROWS });
    const parts: Readonly<Record<string, () => Promise<void>>> = {
      one: () => beside(url, { name: `1 file of ${ROWS} rows`, files: 1, wanted: 1, write: standard }),
      four: () => beside(url, { name: `4 files of ${ROWS} rows`, files: 4, wanted: 1.5, write: standard }),
      small: () => beside(url, { name: `${FILES} files of 96 rows`, files: FILES, wanted: 0.7, write: writeMeterDay }),
      large: () => large(url),
      migrate: () => migrateBeside(url, { name: `4 files of ${ROWS} rows`, files: 4, wanted: 0.85, write: standard }),
      idle: () => idle(url),
      hostile: () => hostileServices(url),
      outage: () => benchOutage(url),
    };
    for (const [name, part] of Object.entries(parts)) if (PARTS === undefined || PARTS.includes(name)) await part();
  } finally {
    await sink.stop();
  }
}

interface Piece {
  readonly name: string;
  readonly files: number;
  /** Times as fast as what it is compared with. */
  readonly wanted: number;
  write(path: string, index: number): void;
}

/** The same files by the plain script, in its two manners, and by the gateway, in turns. */
async function beside(url: string, piece: Piece): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, piece.files, piece.write);
    const plain: number[] = [];
    const gateway: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const manner of ["whole", "stream"]) {
        const script = join(import.meta.dirname, "delivery-plain.ts");
        const child = await startChild<PlainAnswer>(script, [manner, `${url}/accept`, files]);
        await child.stop();
        const { wall, cpu, peak } = child.answer;
        const { cpu: sinkCpu } = await count(url);
        plain.push(wall);
        print(row(`${piece.name}, plain ${manner}`, wall, "", cpu, "", sinkCpu, peak, ""));
      }
      gateway.push((await throughGateway(`${url}/accept`, folder, files, piece.name)).wall);
    }
    const ratio = Math.min(...plain) / Math.min(...gateway);
    print(
      `${piece.name}: ${ratio.toFixed(2)} times as fast as the faster plain script; at least ${piece.wanted} is wanted`,
    );
  });
}

/**
 * The same files by the gateway and as a migration, which is not verified, in turns; each of them is the
 * first in every other round.
 */
async function migrateBeside(url: string, piece: Piece): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, piece.files, piece.write);
    const ways = {
      gateway: () => throughGateway(`${url}/accept`, folder, files, piece.name),
      migration: async () => {
        const seen = await runMigrate({ folder: roundIn(folder), url: `${url}/accept`, files });
        await assertArrived(url, files, seen, `${piece.name}, migration`);
        return seen;
      },
    };
    const walls = { gateway: [] as number[], migration: [] as number[] };
    for (let round = 0; round < Math.max(ROUNDS_MEDIAN, ROUNDS); round += 1)
      for (const way of round % 2 === 0 ? (["gateway", "migration"] as const) : (["migration", "gateway"] as const))
        walls[way].push((await ways[way]()).wall);
    const ratio = medianOf(walls.gateway) / medianOf(walls.migration);
    print(
      `${piece.name}: a migration is ${ratio.toFixed(2)} times as fast as the gateway by the ` +
        `medians of ${walls.gateway.length} rounds, ` +
        `${(Math.min(...walls.gateway) / Math.min(...walls.migration)).toFixed(2)} by the best ` +
        `of them; at least ${piece.wanted} is wanted`,
    );
  });
}

/** A file of several times the rows: its memory beside 300 MB. */
async function large(url: string): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    const rows = LARGER * ROWS;
    writeFiles(files, 1, (path) => writeStandardCsv(path, { rows }));
    const { peak } = await throughGateway(`${url}/accept`, folder, files, `1 file of ${rows} rows`);
    print(`the gateway's own process takes ${peak.toFixed(0)} MB at most; less than 300 are wanted`);
  });
}

/** Files that nothing is to be done about any more: what it costs to look at them again and again. */
async function idle(url: string): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    // No trigger claims them.
    writeFiles(files, KNOWN_FILES, (path) => writeFileSync(path.replace(/csv$/, "txt"), "known"));
    linkFiles(files, join(folder, "drop"));
    const cpuAt: number[] = [];
    await runGateway({
      folder,
      url: `${url}/accept`,
      stopAfterMs: SETTLE_MS + IDLE_MS,
      onLook: (seconds, cpu) => {
        if (seconds < SETTLE_MS / 1e3) cpuAt[0] = cpu;
        cpuAt[1] = cpu;
      },
    });
    const [from = 0, to = 0] = cpuAt;
    const share = (100 * (to - from)) / (IDLE_MS / 1e3);
    print(
      `idle with ${KNOWN_FILES} known files: ${share.toFixed(2)} % of a core over ` +
        `${IDLE_MS / 1e3} s; less than 1 is wanted`,
    );
  });
}

/**
 * Files for services that are away or slow, or answer what they should not: what that does to the memory of
 * the gateway, beside a service as it should be.
 */
async function hostileServices(url: string): Promise<void> {
  print(row("what a service may do", "wall", "to the end", "CPU", "mappers", "sink", "peak", "together"));
  const usual = await hostile(url, "accept");
  const peaks: number[] = [];
  for (const manner of ["away", "slow", "huge", "drip", "headers", "elsewhere", "page"])
    peaks.push(await hostile(url, manner));
  print(
    `the worst of these takes ${(Math.max(...peaks) / usual).toFixed(2)} times the memory of ` +
      `a service as it should be (${usual.toFixed(0)} MB); not more than 1.25 is wanted`,
  );
}

/** Answers the peak in megabytes. */
async function hostile(url: string, manner: string): Promise<number> {
  let peak = 0;
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, HOSTILE_FILES, writeMeterDay);
    linkFiles(files, join(folder, "drop"));
    const service = manner === "away" ? NOBODY : `${url}/${manner}`;
    const seen = await runGateway({ folder, url: service, stopAfterMs: HOSTILE_MS });
    print(answerRow(`${manner}: ${JSON.stringify(seen.runs)}`, seen, (await count(url)).cpu));
    for (const reason of seen.reasons) print(`    ${reason}`);
    peak = seen.peak;
  });
  return peak;
}

/**
 * What earlier rounds wrote stays until the end: a file system may create files more slowly where many were
 * removed a moment ago.
 */
function roundIn(folder: string): string {
  return mkdtempSync(join(folder, "round-"));
}

async function throughGateway(url: string, folder: string, files: string, name: string): Promise<GatewayAnswer> {
  const round = roundIn(folder);
  linkFiles(files, join(round, "drop"));
  const seen = await runGateway({ folder: round, url });
  await assertArrived(new URL(url).origin, files, seen, `${name}, gateway`);
  return seen;
}

/** The sink counted what the ledger says, and every file was delivered. */
async function assertArrived(url: string, files: string, seen: GatewayAnswer, name: string): Promise<void> {
  const counted = await count(url);
  const delivered = seen.runs["accepted"] ?? 0;
  if (delivered !== readdirSync(files).length || counted.points !== seen.points)
    throw new Error(`not all arrived: ${JSON.stringify({ ...seen, counted })}`);
  print(answerRow(name, seen, counted.cpu));
}
