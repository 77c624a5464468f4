/**
 * A process that maps one file by the pool; the test ends it from outside. Arguments: the folder of the
 * mapper, and its name.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { silentLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import { workersOptions } from "#mapping/options.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";

const [folder = "", name = ""] = process.argv.slice(2);
const digest = await digestMapper((await locateMapper([folder], name)) ?? "");
const inputPath = join(folder, "input.csv");
await writeFile(inputPath, "");
const pool = createMappingPool(workersOptions.parse({ count: 1 }), [folder], silentLog);
await onlyOne(
  pool.map(
    [
      {
        runId: "run",
        inputPath,
        fileName: "input.csv",
        filePath: "input.csv",
        binding: {
          mapper: { name, version: "0.0.0", digest },
          settings: {},
          rows: "strict",
          limits: { pointsMax: 100, bytesMax: 10_000 },
        },
        segmentPath: join(folder, "segment"),
      },
    ],
    new AbortController().signal,
  ),
);
