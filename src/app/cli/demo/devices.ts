/** Loggers that send their files to the hub itself, by SFTP and FTP; file triggers of the hub claim them. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Client as FtpClient } from "basic-ftp";
import ssh2 from "ssh2";
import { z } from "zod";
import { API_VERSION } from "#wire/problem.ts";
import { fingerprintOfKey, portOf } from "./field.ts";
import type { Ended, Scenario } from "./scenario.ts";

/** Name of what the lines show in the place of a drop. */
export const HUB_LINE = "hub";
const USER = { username: "device", password: "demo-password" };
const POLL_MS = 200;
const CALL_MS = 10_000;

export interface SentTo {
  readonly hubUrl: string;
  readonly token: string;
  readonly transfer: { readonly sftp: string | null; readonly ftp: string | null };
  /** Text of the private key of the hub. */
  readonly hostKey: string;
  /** Folder of the files. */
  readonly folder: string;
}

type Report = (file: string, words: string, detail: string) => void;

const records = z.array(
  z.object({ id: z.int(), fileName: z.string(), state: z.string(), reason: z.string().nullable() }),
);

/** Sends what the hub does not have yet, and resolves when the fate of every file is known, or with the signal. */
export async function sendFromDevices(
  { files, triggers }: Scenario["hub"],
  to: SentTo,
  report: Report,
  signal: AbortSignal,
): Promise<readonly Ended[]> {
  const known = await filesOf(to);
  if (known.length === 0) for (const trigger of triggers) await call(to, "/fileTrigger", trigger);
  for (const [name, { by }] of Object.entries(files)) {
    if (known.some(({ fileName }) => fileName === name)) continue;
    const content = await readFile(join(to.folder, name));
    await (by === "sftp" ? sendBySftp : sendByFtp)(to, name, content);
    report(name, "sent", `${content.length} bytes by ${by.toUpperCase()}, to the hub itself`);
  }
  const found = new Map<string, z.output<typeof records>[number]>();
  while (found.size < Object.keys(files).length && !signal.aborted) {
    for (const file of await filesOf(to)) {
      const isOpen = ["received", "processing"].includes(file.state);
      if (isOpen || files[file.fileName] === undefined || found.has(file.fileName)) continue;
      found.set(file.fileName, file);
      report(file.fileName, file.state, file.reason ?? "by a file trigger of the hub");
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined); // The signal ends the loop.
  }
  return Object.entries(files).map(([path, { ends }]) => {
    const file = found.get(path);
    const state = file?.state ?? "not processed in time";
    const fault = state === ends ? null : `should have ended ${ends}`;
    const where = file === undefined ? "" : `GET /storage/${file.id}`;
    return { drop: HUB_LINE, path, expected: ends, found: state, where, points: 0, fault };
  });
}

async function filesOf(to: SentTo): Promise<z.output<typeof records>> {
  return records.parse(await (await call(to, "/storage")).json());
}

/** GET, or POST with a body. Throws what the hub refuses. */
export async function call(
  { hubUrl, token }: Pick<SentTo, "hubUrl" | "token">,
  path: string,
  body?: unknown,
): Promise<Response> {
  const headers = { Authorization: `Bearer ${token}`, "x-opisense-api-version": API_VERSION };
  const response = await fetch(`${hubUrl}${path}`, {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: { ...headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
    signal: AbortSignal.timeout(CALL_MS),
  });
  if (!response.ok) throw new Error(`the hub answered ${response.status} to ${path}: ${await response.text()}`);
  return response;
}

/** Under a temporary name, as careful senders do. */
async function sendBySftp({ transfer, hostKey }: SentTo, name: string, content: Buffer): Promise<void> {
  const client = new ssh2.Client();
  const trusted = fingerprintOfKey(hostKey);
  try {
    await new Promise<void>((resolve, reject) => {
      client.on("connect", () => client.setNoDelay(true));
      client.on("ready", resolve).on("error", reject);
      client.connect({
        host: "127.0.0.1",
        port: portOf(transfer.sftp),
        ...USER,
        readyTimeout: CALL_MS,
        hostHash: "sha256",
        hostVerifier: (hex: string) =>
          `SHA256:${Buffer.from(hex, "hex").toString("base64").replace(/=+$/, "")}` === trusted,
      });
    });
    const sftp = await answered<ssh2.SFTPWrapper>((done) => client.sftp(done));
    await answered<void>((done) => sftp.writeFile(`/${name}.part`, content, done));
    await answered<void>((done) => sftp.rename(`/${name}.part`, `/${name}`, done));
  } finally {
    client.end();
  }
}

function answered<T>(start: (done: (fault: Error | undefined | null, value: T) => void) => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    start((fault, value) => (fault ? reject(fault) : resolve(value)));
  });
}

async function sendByFtp({ transfer }: SentTo, name: string, content: Buffer): Promise<void> {
  const client = new FtpClient(CALL_MS);
  try {
    const { username: user, password } = USER;
    await client.access({ host: "127.0.0.1", port: portOf(transfer.ftp), user, password });
    await client.uploadFrom(Readable.from([content]), name);
  } finally {
    client.close();
  }
}
