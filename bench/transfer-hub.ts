/** The real hub, with its file-transfer server, as a process that is watched from outside. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { watchProcesses } from "./delivery-gateway.ts";
import { prefill } from "./hub-data.ts";

export const SENDER = { username: "bench", password: "bench-password" };
export const CLIENT = { clientId: "bench", clientSecret: "bench-secret" };
export const WEBHOOK_SECRET = "a secret of the bench";
const LOOK_MS = 50;

export interface TransferHub {
  readonly url: string;
  readonly sftpPort: number;
  /** CPU seconds and megabytes so far, of the hub and its mappers. */
  readonly seen: ReturnType<typeof watchProcesses>["seen"];
  /** A request as the sender. */
  call(path: string, init: RequestInit): Promise<unknown>;
  /** When the last of so many points was stored, in milliseconds of the epoch. */
  storedAt(points: number): Promise<number>;
  stop(): Promise<void>;
}

/** A store with a meter for each file, from which the stores of the rounds are copied. */
export async function makeStore(path: string, meters: number): Promise<void> {
  await prefill(path, meters, 0);
  const database = new DatabaseSync(path);
  database.exec("UPDATE source SET serial_number = 'M-' || printf('%05d', id - 1); PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** `store`: a copy of it is used; everything that the hub writes comes into `folder`. */
export async function startTransferHub(folder: string, store: string): Promise<TransferHub> {
  const path = join(folder, "hub.sqlite");
  for (const end of ["", ".intake"]) cpSync(store + end, path + end);
  const config = join(folder, "hub.yaml");
  writeFileSync(config, JSON.stringify(optionsAt(path)));
  const program = join(import.meta.dirname, "../src/headgate.js");
  const child = spawn(process.execPath, [program, "hub", "-c", config], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  const watched = watchProcesses(child, () => undefined);
  const listens = Promise.withResolvers<{ url: string; sftp: string }>();
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (line.includes('"hub listens"')) listens.resolve(JSON.parse(line));
    else if (/"level":"(?:warn|error)"/.test(line)) process.stderr.write(`${line}\n`);
  });
  const { url, sftp } = await Promise.race([
    listens.promise,
    exited.then(() => {
      throw new Error("the hub ended");
    }),
  ]);
  const authorization = `Bearer ${await tokenOf(url)}`;
  const call = async (to: string, init: RequestInit) => {
    const headers = { ...init.headers, authorization, "api-version": "1.7" };
    const answer = await fetch(`${url}${to}`, { ...init, headers });
    if (!answer.ok) throw new Error(`${to}: ${answer.status} ${await answer.text()}`);
    return await answer.json();
  };
  await call("/fileTrigger", { method: "POST", ...json(TRIGGER) });
  return {
    url,
    sftpPort: Number(sftp.split(":").at(-1)),
    seen: watched.seen,
    call,
    storedAt: (points) => storedAt(path, points),
    async stop() {
      child.kill("SIGTERM");
      await exited;
      clearInterval(watched.timer);
    },
  };
}

const TRIGGER = {
  name: "bench",
  ingestionType: "SendViaFtp",
  mapping: "standard",
  fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
};

function json(body: unknown): RequestInit {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function optionsAt(path: string): object {
  return {
    listen: "127.0.0.1:0",
    store: { kind: "sqlite", path },
    accounts: [{ id: 1, name: "Bench" }],
    clients: [{ id: CLIENT.clientId, secret: CLIENT.clientSecret }],
    users: [{ ...SENDER, accounts: [1], roles: ["Manager"] }],
    limits: { file: "4GB" },
    transfer: { sftp: { listen: "127.0.0.1:0" } },
    files: { workers: 2 },
    webhook: { secret: WEBHOOK_SECRET, hosts: ["127.0.0.1"] },
  };
}

async function tokenOf(url: string): Promise<string> {
  const fields = {
    grant_type: "password",
    client_id: CLIENT.clientId,
    client_secret: CLIENT.clientSecret,
    ...SENDER,
    scope: "datahub-api push-data",
  };
  const answer = await fetch(`${url}/connect/token`, { method: "POST", body: new URLSearchParams(fields) });
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** By the outcomes, which are committed with the points. */
async function storedAt(path: string, points: number): Promise<number> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const outcomes = database.prepare("SELECT sum(stored) AS points, max(finished_ms) AS at FROM outcome");
    for (;;) {
      const found = outcomes.get();
      if (Number(found?.["points"] ?? 0) >= points) return Number(found?.["at"]);
      await sleep(LOOK_MS);
    }
  } finally {
    database.close();
  }
}
