/** A hub in a process of its own, and a client of it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Pool } from "undici";

export interface BenchHub {
  readonly url: string;
  /** Milliseconds until the answer. */
  push(body: Buffer): Promise<number>;
  /** Until everything that was pushed is applied. */
  drained(): Promise<void>;
  /** POST /data; the text of the answer. */
  query(query: object): Promise<string>;
  /** Any call; the text of the answer. */
  call(method: "GET" | "POST", path: string, body?: object): Promise<string>;
  /** CPU seconds of its process so far, user and system. */
  cpuSeconds(): Promise<number>;
  /** Ends it; its peak of memory in megabytes. */
  stop(): Promise<number>;
}

const POLL_MS = 10;
/** As `src/headgate.js` starts a hub. */
const NODE_FLAGS = ["--max-semi-space-size=8"];
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  MALLOC_TRIM_THRESHOLD_: "8388608",
  MALLOC_TOP_PAD_: "1048576",
  UV_THREADPOOL_SIZE: "12",
};

export async function startBenchHub(store: object): Promise<BenchHub> {
  const options = {
    listen: "127.0.0.1:0",
    store,
    accounts: [{ id: 1, name: "Bench" }],
    clients: [{ id: "bench", secret: "bench-secret" }],
    users: [{ username: "bench", password: "bench-password", accounts: [1], roles: ["Manager"] }],
  };
  const child = fork(join(import.meta.dirname, "hub-server.ts"), [JSON.stringify(options)], {
    execArgv: [...process.execArgv, ...NODE_FLAGS],
    env: { ...ENVIRONMENT, ...process.env },
  });
  const { url } = await told<{ url: string }>(child);
  const pool = new Pool(url, { connections: 8 });
  const headers = {
    authorization: `Bearer ${await tokenOf(pool)}`,
    "api-version": "1.7",
    "content-type": "application/json",
  };
  const text = async (method: "GET" | "POST", path: string, body?: Buffer | string): Promise<string> => {
    const more = body === undefined ? {} : { body };
    const answer = await pool.request({ method, path, headers, ...more });
    const content = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode} ${content.slice(0, 500)}`);
    return content;
  };
  return {
    url,
    async push(body) {
      const began = performance.now();
      await text("POST", "/push/api/data", body);
      return performance.now() - began;
    },
    async drained() {
      for (;;) {
        const { pendingOperations } = JSON.parse(await text("GET", "/health")) as {
          pendingOperations: number;
        };
        if (pendingOperations === 0) return;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    query: (query) => text("POST", "/data", JSON.stringify(query)),
    call: (method, path, body) => text(method, path, body === undefined ? undefined : JSON.stringify(body)),
    async cpuSeconds() {
      child.send("cpu");
      return (await told<{ seconds: number }>(child)).seconds;
    },
    async stop() {
      await pool.close();
      child.send("memory");
      const { peak } = await told<{ peak: number }>(child);
      const exited = once(child, "exit");
      child.send("stop");
      await exited;
      return peak;
    },
  };
}

async function told<Message>(child: ChildProcess): Promise<Message> {
  const done = new AbortController();
  const { signal } = done;
  const ended = once(child, "exit", { signal }).then(
    () => {
      throw new Error("the hub ended");
    },
    () => [],
  );
  const [message] = await Promise.race([once(child, "message", { signal }), ended]);
  done.abort();
  return message as Message;
}

async function tokenOf(pool: Pool): Promise<string> {
  const fields = {
    grant_type: "password",
    client_id: "bench",
    client_secret: "bench-secret",
    username: "bench",
    password: "bench-password",
    scope: "datahub-api push-data",
  };
  const answer = await pool.request({
    method: "POST",
    path: "/connect/token",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(fields).toString(),
  });
  return ((await answer.body.json()) as { access_token: string }).access_token;
}
