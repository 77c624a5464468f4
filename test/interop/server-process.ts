/** A server program in the foreground on a free port of the loopback address, and its end with all its sessions. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { promisify } from "node:util";

const START_WAIT_MS = 60_000;
const STOP_WAIT_MS = 5_000;
const STARTS_MAX = 3;
const LOG_LENGTH_MAX = 20_000;

export interface ServerProcess {
  readonly port: number;
  /** Ends the server and the sessions that it has, as a crash or a restart of its machine would. */
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
}

/** `prepare` writes the configuration for a port. Another port is tried when somebody was faster. */
export async function startServer(
  prepare: (port: number) => Promise<ServerCommand>,
  wishedPort?: number,
): Promise<ServerProcess> {
  for (let start = 1; ; start += 1) {
    const port = wishedPort ?? (await freePort());
    const { program, args } = await prepare(port);
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    const log = keepLog(child);
    try {
      await answering(child, port);
      return { port, stop: () => stop(child) };
    } catch (thrown) {
      await stop(child);
      if (start === STARTS_MAX) throw new Error(`${program} does not start:\n${log()}`, { cause: thrown });
    }
  }
}

/** Runs a tool to its end and answers what it printed. */
export async function run(program: string, ...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(program, args, { timeout: 30_000 })).stdout.trim();
}

function keepLog(child: ChildProcess): () => string {
  let text = "";
  const keep = (part: Buffer) => {
    text = (text + part.toString()).slice(-LOG_LENGTH_MAX);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  child.on("error", (error) => keep(Buffer.from(error.message)));
  return () => text;
}

async function answering(child: ChildProcess, port: number): Promise<void> {
  const deadline = performance.now() + START_WAIT_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined)
      throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`);
    if (performance.now() > deadline) throw new Error(`it does not listen after ${START_WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return;
  const sessions = await descendants(child.pid);
  if (child.exitCode === null && child.signalCode === null) {
    const closed = once(child, "close");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_WAIT_MS);
    for (const pid of sessions) end(pid);
    await closed;
    clearTimeout(timer);
  }
}

/** Processes below one, deepest first, as far as they are still attached to it. */
async function descendants(of: number): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const status = await readFile(`/proc/${name}/stat`, "utf8").catch(() => ""); // It ended meanwhile.
    const parent = /\) \S (\d+)/.exec(status)?.[1];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const below = (pid: number): number[] =>
    [...parents].filter(([, parent]) => parent === pid).flatMap(([child]) => [...below(child), child]);
  return below(of);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
