/**
 * Senders as loggers in the field: each sends one file after the other, and when the hub is gone in the middle, it
 * sends the file again, continues it where the protocol can, or gives it up.
 */
import { Readable } from "node:stream";
import { ReadableStream } from "node:stream/web";
import { setImmediate as turn } from "node:timers/promises";
import { Client } from "basic-ftp";
import { type HubCalls, multipartOf } from "../hub/fixture.ts";
import type { HubProcess } from "../hub/hub-process.ts";
import { portOf, sftpSender } from "../hub/transfer/sender.ts";

export interface Sent {
  readonly name: string;
  readonly content: Buffer<ArrayBuffer>;
  /** The last step was begun: the end of the body, closing the file, or renaming it. */
  isBegun: boolean;
  isAnswered: boolean;
}

export interface Target extends Pick<HubProcess, "transfer"> {
  readonly calls: HubCalls;
  /** Of the trigger for files that are pushed in the sender's own format. */
  readonly token: string;
}

export interface Way {
  readonly name: string;
  /** Until the answer; throws when the hub is gone. */
  send(at: Target, file: Sent, chance: () => number): Promise<void>;
}

const CHUNK_BYTES = 8 * 1024;
const user = { username: "pusher", password: "pusher-password" };

export const WAYS: readonly Way[] = [
  {
    name: "storage",
    send(at, file) {
      const { raw, headers } = multipartOf(file.content);
      return byHttp(at, file, `/storage?Filename=${file.name}`, { raw, headers });
    },
  },
  {
    name: "generic",
    send(at, file) {
      const headers = { "content-type": "text/csv" };
      return byHttp(at, file, `/push/api/generic/${at.token}?filename=${file.name}`, { raw: file.content, headers });
    },
  },
  { name: "sftp", send: (at, file, chance) => bySftp(at, file, chance, null) },
  { name: "sftp-part", send: (at, file, chance) => bySftp(at, file, chance, `/${file.name}.part`) },
  { name: "ftp", send: (at, file, chance) => byFtp(at, file, chance, { part: null, secure: false }) },
  {
    name: "ftp-part",
    send: (at, file, chance) => byFtp(at, file, chance, { part: `${file.name}.part`, secure: false }),
  },
  { name: "ftps", send: (at, file, chance) => byFtp(at, file, chance, { part: null, secure: true }) },
];

/** Ends with the last step of the file, unless that is yet to come (`isLast`). */
async function* slowly(file: Sent, bytes: Uint8Array, isLast: boolean): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < bytes.length; position += CHUNK_BYTES) {
    yield bytes.subarray(position, position + CHUNK_BYTES);
    await turn();
  }
  file.isBegun ||= isLast;
}

interface Body {
  readonly raw: Uint8Array;
  readonly headers: Record<string, string>;
}

async function byHttp({ calls }: Target, file: Sent, path: string, { raw, headers }: Body): Promise<void> {
  const response = await fetch(calls.url() + path, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${await calls.token()}`, "idempotency-key": file.name },
    body: ReadableStream.from(slowly(file, raw, true)),
    duplex: "half",
  } as RequestInit);
  const answer = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${answer}`);
}

async function bySftp(at: Target, file: Sent, chance: () => number, part: string | null): Promise<void> {
  const sender = await sftpSender({ transfer: () => at.transfer }, { ...user, readyTimeout: 10_000 });
  const gone = new Promise<never>((_, reject) => {
    sender.client.once("close", () => reject(new Error("the server is gone")));
  });
  gone.catch(() => null);
  const path = part ?? `/${file.name}`;
  try {
    const { size } = await sender.stat(path).catch(() => ({ size: 0 }));
    const isContinued = size > 0 && size <= file.content.length && chance() < 0.5;
    // A file that was taken cannot be continued.
    const opened = isContinued ? await sender.open(path, "r+").catch(() => null) : null;
    const handle = opened ?? (await sender.open(path, "w"));
    let position = opened === null ? 0 : size;
    for await (const chunk of slowly(file, file.content.subarray(position), part === null)) {
      const written = new Promise<void>((resolve, reject) => {
        sender.sftp.write(handle, Buffer.from(chunk), 0, chunk.length, position, (fault) =>
          fault ? reject(fault) : resolve(),
        );
      });
      await Promise.race([written, gone]);
      position += chunk.length;
    }
    await Promise.race([sender.close(handle), gone]);
    if (part === null) return;
    file.isBegun = true;
    await Promise.race([sender.call("rename", part, `/${file.name}`), gone]);
  } finally {
    sender.client.destroy();
  }
}

async function byFtp(
  at: Target,
  file: Sent,
  chance: () => number,
  { part, secure }: { readonly part: string | null; readonly secure: boolean },
): Promise<void> {
  const client = new Client(10_000);
  try {
    const secureOptions = { rejectUnauthorized: false };
    const { username, password } = user;
    const port = portOf(at.transfer?.ftp);
    await client.access({ host: "127.0.0.1", port, user: username, password, secure, secureOptions });
    const path = part ?? file.name;
    const size = await client.size(path).catch(() => 0);
    const send = (from: number) => Readable.from(slowly(file, file.content.subarray(from), part === null));
    const isContinued = size > 0 && size < file.content.length && chance() < 0.5;
    // A file that was taken cannot be continued.
    if (!isContinued || !(await client.appendFrom(send(size), path).then(() => true, isRefusal)))
      await client.uploadFrom(send(0), path);
    if (part === null) return;
    file.isBegun = true;
    await client.rename(part, file.name);
  } finally {
    client.close();
  }
}

function isRefusal(thrown: Error): boolean {
  if ("code" in thrown && thrown.code === 550) return false;
  throw thrown;
}
