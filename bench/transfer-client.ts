/**
 * A sender by SFTP: `transfer-client.ts PORT IN_FLIGHT FOLDER` sends each file of a folder, and `transfer-client.ts
 * PORT IN_FLIGHT BYTES` one file of so many bytes, with so many requests or files under way on its one connection.
 */
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import ssh2, { type SFTPWrapper } from "ssh2";
import { measure, peakMegabytes } from "./child.ts";
import { SENDER } from "./transfer-hub.ts";

export interface ClientAnswer {
  /** When it began to connect, and when the last close was answered; milliseconds of the epoch. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly cpu: number;
  /** Megabytes. */
  readonly peak: number;
}

/** As OpenSSH's client sends. */
const WRITE_BYTES = 32 * 1024;

const [port, inFlight, what = ""] = process.argv.slice(2);

function answered<T = void>(call: (done: (fault?: Error | null, value?: T) => void) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    call((fault, value) => (fault ? reject(fault) : resolve(value as T)));
  });
}

function connected(client: InstanceType<typeof ssh2.Client>): Promise<void> {
  return new Promise((resolve, reject) => {
    client.on("connect", () => client.setNoDelay(true));
    client.on("ready", () => resolve()).on("error", reject);
    client.connect({ host: "127.0.0.1", port: Number(port), ...SENDER });
  });
}

async function together(work: () => Promise<boolean>): Promise<void> {
  const worker = async () => {
    while (await work());
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, worker));
}

async function sendFolder(sftp: SFTPWrapper): Promise<void> {
  const names = readdirSync(what).sort();
  await together(async () => {
    const name = names.shift();
    if (name === undefined) return false;
    const bytes = await readFile(join(what, name));
    const handle = await answered<Buffer>((done) => sftp.open(`/${name}`, "w", done));
    await answered((done) => sftp.write(handle, bytes, 0, bytes.length, 0, done));
    await answered((done) => sftp.close(handle, done));
    return true;
  });
}

async function sendBytes(sftp: SFTPWrapper): Promise<void> {
  const bytes = Buffer.alloc(WRITE_BYTES, "a line that no trigger claims\n");
  const handle = await answered<Buffer>((done) => sftp.open("/large.bin", "w", done));
  let next = 0;
  await together(async () => {
    const at = next;
    if (at >= Number(what)) return false;
    next += WRITE_BYTES;
    await answered((done) => sftp.write(handle, bytes, 0, bytes.length, at, done));
    return true;
  });
  await answered((done) => sftp.close(handle, done));
}

const client = new ssh2.Client();
const startedMs = Date.now();
const { cpu } = await measure(async () => {
  await connected(client);
  const sftp = await answered<SFTPWrapper>((done) => client.sftp(done));
  await (Number.isNaN(Number(what)) ? sendFolder(sftp) : sendBytes(sftp));
});
const answer: ClientAnswer = { startedMs, endedMs: Date.now(), cpu, peak: peakMegabytes() };
client.end();
process.stdout.write(`${JSON.stringify(answer)}\n`);
