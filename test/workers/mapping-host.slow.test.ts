import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import { digestMapper } from "#mapping/mapper-files.ts";
import { MappingHost } from "#mapping/workers/mapping-host.ts";
import { HostPool } from "#mapping/workers/pool.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { writeMapper } from "./pool-rig.ts";

const LIMITS = { memory: 512_000_000, threads: 2, writable: null };

it("a cancelled task ends soon, also when the report of its begin arrives later and its thread hangs", async () => {
  const folder = await temporaryFolder();
  const pipe = join(folder, "pipe");
  const note = join(folder, "note");
  execFileSync("mkfifo", [pipe]);
  await writeMapper(
    folder,
    "hangs",
    "",
    `import { openSync, writeFileSync } from "node:fs";
    writeFileSync(${JSON.stringify(note)}, "");
    openSync(${JSON.stringify(pipe)}, "r");`,
  );
  const modulePath = join(folder, "hangs.ts");
  const request = { kind: "describe", modulePath, digest: await digestMapper(modulePath) } as const;
  const host = new MappingHost({ ...LIMITS, threads: 1 }, { fault: () => undefined, late: () => undefined });
  const stop = new AbortController();
  const asked = host.ask(request, { signal: stop.signal, timeLimit: 2_000 });
  // Without a turn of the event loop, which would receive the report.
  while (!existsSync(note)) wait(10);
  wait(200);
  stop.abort();
  expect(await asked).toMatchObject({ outcome: { end: "cancelled" } });
  await host.kill();
});

it("ends the threads that have no task, but the last one", async () => {
  const { host, module } = await idleHost(new HostPool(10, LIMITS, { log: silentLog, onLate: () => undefined }), "one");
  expect(host.threads).toBe(2);
  await expect.poll(() => host.threads, { timeout: 60_000 }).toBe(1);
  const { outcome } = await host.ask({ kind: "describe", ...module }, { timeLimit: 60_000 });
  expect(outcome).toMatchObject({ end: "answered" });
  await host.kill();
});

it("idle hosts are kept up to a number of threads", async () => {
  const pool = new HostPool(3, LIMITS, { log: silentLog, onLate: () => undefined });
  const hosts = [await idleHost(pool, "one"), await idleHost(pool, "two")].map(({ host }) => host);
  const kept = hosts.filter((host) => host.isAlive);
  expect(kept.reduce((sum, { threads }) => sum + threads, 0)).toBeLessThanOrEqual(3);
  expect(kept).toContain(hosts[1]);
  await pool.close();
});

/** A host of a pool after two tasks side by side. */
async function idleHost(pool: HostPool, name: string) {
  const folder = await temporaryFolder();
  await writeMapper(folder, name, "", "await new Promise((resolve) => setTimeout(resolve, 500));");
  const modulePath = join(folder, `${name}.ts`);
  const module = { modulePath, digest: await digestMapper(modulePath) };
  const host = pool.take(module, "shared");
  const ask = () => host.ask({ kind: "describe", ...module }, { timeLimit: 60_000 });
  const asked = await Promise.all([ask(), ask()]);
  for (const { outcome } of asked) expect(outcome).toMatchObject({ end: "answered" });
  pool.giveBack(host, module, null);
  return { host, module };
}

function wait(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
