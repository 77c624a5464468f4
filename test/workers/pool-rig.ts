/** A pool over a folder of its own, with mappers of the given bodies of `map`. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterEach } from "vitest";
import { createLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import type { MapJob, MappingPool } from "#mapping/contract.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import { type WorkersOptions, workersOptions } from "#mapping/options.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";
import { temporaryFolder } from "../mapping/kit.ts";

const pools: MappingPool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

export const OPTIONS: WorkersOptions = workersOptions.parse({ count: 2, timeLimit: "60s" });
export const GOOD = `emit({ target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: 1 })`;

export async function poolOf(
  bodies: Readonly<Record<string, string>>,
  options: Partial<WorkersOptions> = {},
  spare = 0,
) {
  const folder = await temporaryFolder();
  const mappers = join(folder, "mappers");
  await mkdir(mappers);
  for (const [name, body] of Object.entries(bodies)) await writeMapper(mappers, name, body);
  const lines: string[] = [];
  const log = createLog(
    "info",
    new Writable({
      write: (chunk, _, done) => {
        lines.push(String(chunk));
        done();
      },
    }),
  );
  const pool = createMappingPool({ ...OPTIONS, ...options }, [mappers], log, { writable: [folder], spare });
  pools.push(pool);
  await writeFile(join(folder, "input.csv"), "a\n1\n");

  async function job(name: string): Promise<MapJob> {
    const modulePath = (await locateMapper([mappers], name)) ?? "";
    const digest = await digestMapper(modulePath);
    return {
      runId: "run",
      inputPath: join(folder, "input.csv"),
      fileName: "input.csv",
      filePath: "in/input.csv",
      binding: {
        mapper: { name, version: "0.0.0", digest },
        settings: {},
        rows: "strict",
        limits: { pointsMax: 100, bytesMax: 10_000 },
      },
      segmentPath: join(folder, `${name}.segment`),
    };
  }
  const map = async (name: string, signal = new AbortController().signal) =>
    await onlyOne(pool.map([await job(name)], signal));
  return { pool, folder, mappers, lines, job, map };
}

export async function writeMapper(folder: string, name: string, body: string, head = ""): Promise<void> {
  const module = `import { defineMapper } from "headgate/mapper";${head}
export default defineMapper({ name: ${JSON.stringify(name)}, summary: "of a test", async map({ file, emit, eachRow, reject, log }: any) { ${body} } });`;
  await writeFile(join(folder, `${name}.ts`), module);
}
