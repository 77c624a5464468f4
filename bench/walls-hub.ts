/** The hub as `headgate hub` starts it from its sources, with two accounts and a caller for each. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const CLIENT = { id: "bench", secret: "bench-secret" };
const PASSWORD = "bench-password";
/** Between two looks of a caller at what it waits for. */
const LOOK_MS = 5;
/** What does not come in this time is a fault of the bench. */
const PATIENCE_MS = 120_000;

/** A Manager of one account. */
export interface Caller {
  /** Throws for other answers than 2xx; `body` as JSON unless it is a form. */
  call(method: string, path: string, body?: object | FormData): Promise<unknown>;
  /** The id of the new stored file. */
  store(name: string, content: string): Promise<number>;
  /** Waits until the file has this state; throws when it is refused. */
  stored(id: number, state?: string): Promise<void>;
  /** Pushes, and waits for the outcome. */
  push(body: object): Promise<void>;
  /** Site, source and variable; the id of the variable. The source has this serial number. */
  variable(serial: string): Promise<number>;
  /** A trigger for uploaded files with names that begin so. */
  trigger(beginning: string, more: object): Promise<void>;
}

export interface WallsHub {
  /** Of the account with the load, and of the other one. */
  readonly heavy: Caller;
  readonly other: Caller;
  stop(): Promise<void>;
}

export async function startWallsHub(folder: string, more: object): Promise<WallsHub> {
  const config = join(folder, "hub.yaml");
  writeFileSync(config, JSON.stringify({ ...optionsIn(folder), ...more }));
  const program = join(import.meta.dirname, "../src/headgate.js");
  const child = spawn(process.execPath, [program, "hub", "-c", config], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  const listens = Promise.withResolvers<string>();
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (line.includes('"hub listens"')) listens.resolve((JSON.parse(line) as { url: string }).url);
    else if (line.includes('"level":"error"') || !line.startsWith("{")) process.stderr.write(`${line}\n`);
  });
  const ended = exited.then(() => {
    throw new Error("the hub ended");
  });
  const url = await Promise.race([listens.promise, ended]);
  ended.catch(() => undefined);
  return {
    heavy: await callerOf(url, "heavy"),
    other: await callerOf(url, "other"),
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

function optionsIn(folder: string): object {
  return {
    listen: "127.0.0.1:0",
    publicUrl: "https://hub.example.com",
    store: { kind: "sqlite", path: join(folder, "hub.sqlite") },
    accounts: [
      { id: 1, name: "Heavy" },
      { id: 2, name: "Other" },
    ],
    clients: [CLIENT],
    users: [
      { username: "heavy", password: PASSWORD, accounts: [1], roles: ["Manager"] },
      { username: "other", password: PASSWORD, accounts: [2], roles: ["Manager"] },
    ],
  };
}

async function callerOf(url: string, username: string): Promise<Caller> {
  const fields = {
    ...{ grant_type: "password", client_id: CLIENT.id, client_secret: CLIENT.secret },
    ...{ username, password: PASSWORD, scope: "datahub-api push-data" },
  };
  const token = await fetch(`${url}/connect/token`, { method: "POST", body: new URLSearchParams(fields) });
  const { access_token } = (await token.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${access_token}`, "api-version": "1.7" };
  const call: Caller["call"] = async (method, path, body) => {
    const content =
      body === undefined || body instanceof FormData
        ? { headers, body: body ?? null }
        : { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(url + path, { method, ...content });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return text === "" ? null : JSON.parse(text);
  };
  return {
    call,
    async store(name, content) {
      const form = new FormData();
      form.append("file", new Blob([content]), name);
      return Number(await call("POST", `/storage?Filename=${name}`, form));
    },
    stored: (id, state = "stored") =>
      until(async () => {
        const file = (await call("GET", `/storage/${id}`)) as { state: string; scan: string; reason: string };
        if (file.state === "quarantined") throw new Error(file.reason);
        return file.state === state || file.scan === state;
      }),
    async push(body) {
      const { operationId } = (await call("POST", "/push/api/data", body)) as { operationId: string };
      await until(async () => {
        const { status } = (await call("GET", `/operations/${operationId}`)) as { status: string };
        return status !== "accepted";
      });
    },
    async variable(serial) {
      const siteId = await call("POST", "/sites", { name: serial, typeId: 3, timeZoneId: "Europe/Paris" });
      const source = { name: serial, siteId, sourceTypeId: 1, serialNumber: serial };
      const { id: sourceId } = (await call("POST", "/sources", source)) as { id: number };
      const variable = { name: serial, sourceId, variableTypeId: 0, unitId: 8, mappingConfig: "kWh" };
      return Number(await call("POST", "/variables", variable));
    },
    async trigger(beginning, more) {
      const fileNamePatternMatches = [{ filterType: "StartsWith", value: beginning }];
      await call("POST", "/fileTrigger", { ingestionType: "UploadInStorage", fileNamePatternMatches, ...more });
    },
  };
}

export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  const lastMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > lastMs) throw new Error(`not so after ${PATIENCE_MS / 1_000} s: ${isSo}`);
    await sleep(LOOK_MS);
  }
}
