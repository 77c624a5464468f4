/**
 * Small files that a client sends by SFTP into a hub, beside the same files that a gateway takes from a local drop and
 * pushes to a hub, in turns: both until the last point is stored in SQLite. And the memory for one large upload.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ReadableStream } from "node:stream/web";
import { accountWebhookKey } from "#wire/index.ts";
import { startChild } from "./child.ts";
import { inFolder, linkFiles, print, row, writeFiles } from "./delivery-field.ts";
import { runGateway } from "./delivery-gateway.ts";
import { writeMeterDay } from "./mapping-data.ts";
import { medianOf } from "./median.ts";
import type { ClientAnswer } from "./transfer-client.ts";
import { CLIENT, makeStore, SENDER, startTransferHub, type TransferHub, WEBHOOK_SECRET } from "./transfer-hub.ts";

const FILES = Number(process.env["HEADGATE_BENCH_FILES"] ?? 1_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 3);
/** Files that the client has under way at one time. */
const IN_FLIGHT = Number(process.env["HEADGATE_BENCH_IN_FLIGHT"] ?? 16);
/** Of the large uploads. */
const LARGE_BYTES = Number(process.env["HEADGATE_BENCH_LARGE_BYTES"] ?? 2_000_000_000);
/** Of `small` and `large`. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",") ?? ["small", "large"];
const READINGS_A_FILE = 96;
const WANTED = 0.7;
const CHUNK_BYTES = 64 * 1024;
const BOUNDARY = "bench";

export async function benchTransfer(): Promise<void> {
  await inFolder(async (folder) => {
    const store = join(folder, "store.sqlite");
    await makeStore(store, FILES);
    if (PARTS.includes("small")) await small(folder, store);
    if (PARTS.includes("large")) await large(folder, store);
  });
}

async function small(folder: string, store: string): Promise<void> {
  print(`transfer: ${FILES} files of ${READINGS_A_FILE} rows, ${ROUNDS} rounds; seconds until all points are stored`);
  print(row("", "wall", "sent", "CPU", "of mappers", "of the hub", "peak", "of the hub"));
  const files = join(folder, "files");
  writeFiles(files, FILES, writeMeterDay);
  const walls = { drop: [] as number[], sftp: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const own = join(folder, `round-${round}`);
    walls.drop.push(await fromDrop(join(own, "drop"), store, files));
    walls.sftp.push(await bySftp(join(own, "sftp"), store, files));
  }
  const ratio = Math.min(...walls.drop) / Math.min(...walls.sftp);
  print(
    `${FILES} files by SFTP: ${ratio.toFixed(2)} times the rate of the local drop by the best rounds, ` +
      `${(medianOf(walls.drop) / medianOf(walls.sftp)).toFixed(2)} by the medians; at least ${WANTED} is wanted`,
  );
}

async function fromDrop(folder: string, store: string, files: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  const hub = await startTransferHub(folder, store);
  try {
    linkFiles(files, join(folder, "drop"));
    const seen = await runGateway({ folder, url: hub.url, push: { confirm: { by: "webhook" } }, sections: to(hub) });
    const wall = ((await hub.storedAt(FILES * READINGS_A_FILE)) - seen.startedMs) / 1e3;
    const { cpu, workersCpu, peak } = seen;
    print(row("local drop", wall, seen.wall, cpu, workersCpu, hubCpu(hub), peak, hub.seen.peak));
    return wall;
  } finally {
    await hub.stop();
  }
}

/** As the gateway inside the hub has them. */
function to({ url }: TransferHub): Readonly<Record<string, unknown>> {
  const service = { name: "hub", base: url, push: `${url}/push`, token: `${url}/connect/token`, account: 1 };
  return {
    services: [
      { ...service, credentials: { ...CLIENT, ...SENDER }, webhook: { secret: accountWebhookKey(WEBHOOK_SECRET, 1) } },
    ],
    operations: { listen: "127.0.0.1:0", webhook: { publicUrl: "http://127.0.0.1:0" } },
    triggers: [
      {
        name: "bench",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
        mapper: "standard",
        guard: { targets: "warn", versions: "push" },
      },
    ],
  };
}

async function bySftp(folder: string, store: string, files: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  const hub = await startTransferHub(folder, store);
  try {
    const sent = await send(hub, files);
    const wall = ((await hub.storedAt(FILES * READINGS_A_FILE)) - sent.startedMs) / 1e3;
    const { workersCpu, peak } = hub.seen;
    const until = (sent.endedMs - sent.startedMs) / 1e3;
    print(row("SFTP", wall, until, sent.cpu, workersCpu, hubCpu(hub) - workersCpu, sent.peak, peak));
    return wall;
  } finally {
    await hub.stop();
  }
}

async function send(hub: TransferHub, what: string): Promise<ClientAnswer> {
  const script = join(import.meta.dirname, "transfer-client.ts");
  const client = await startChild<ClientAnswer>(script, [String(hub.sftpPort), String(IN_FLIGHT), what]);
  await client.stop();
  return client.answer;
}

function hubCpu({ seen }: TransferHub): number {
  return seen.cpu + seen.workersCpu;
}

/** Each in a hub of its own, whose peak is seen before and after. */
async function large(folder: string, store: string): Promise<void> {
  const ways: Readonly<Record<string, (hub: TransferHub) => Promise<unknown>>> = {
    SFTP: (hub) => send(hub, String(LARGE_BYTES)),
    "POST /storage": (hub) => upload(hub),
  };
  for (const [name, way] of Object.entries(ways)) {
    const own = join(folder, `large by ${name.replaceAll(/\W/g, "")}`);
    mkdirSync(own, { recursive: true });
    const hub = await startTransferHub(own, store);
    try {
      const { peak: before } = hub.seen;
      const startedMs = Date.now();
      await way(hub);
      const seconds = (Date.now() - startedMs) / 1e3;
      print(
        `${(LARGE_BYTES / 1e9).toFixed(1)} GB by ${name}: ${seconds.toFixed(1)} s, CPU ${hubCpu(hub).toFixed(1)} s; ` +
          `the hub took ${before.toFixed(0)} MB before, and ${hub.seen.peak.toFixed(0)} MB at most`,
      );
    } finally {
      await hub.stop();
    }
  }
}

async function upload(hub: TransferHub): Promise<void> {
  const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
  const init = { method: "POST", headers, body: ReadableStream.from(multipart()), duplex: "half" };
  await hub.call("/storage?Filename=large.bin", init as RequestInit);
}

async function* multipart(): AsyncGenerator<Uint8Array> {
  yield Buffer.from(
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="large.bin"\r\n` +
      "content-type: application/octet-stream\r\n\r\n",
  );
  const chunk = Buffer.alloc(CHUNK_BYTES, "a line that no trigger claims\n");
  for (let sent = 0; sent < LARGE_BYTES; sent += chunk.length) yield chunk;
  yield Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
}
