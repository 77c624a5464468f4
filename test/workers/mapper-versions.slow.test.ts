/** Versions of mappers: which one new runs take, and that every one stays as it was. */

import { mkdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import type { MapperIdentity } from "#gateway/model.ts";
import type { MappingPool } from "#mapping/contract.ts";
import { createInspector, type Inspector } from "#mapping/workers/inspector.ts";
import { KeptVersions } from "#mapping/workers/mapper-versions.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";
import { temporaryFolder } from "../mapping/kit.ts";
import { OPTIONS } from "./pool-rig.ts";

let folder: string;
let versions: KeptVersions;
let inspector: Inspector;
let pool: MappingPool;

/** Longer than a busy machine takes to load a mapper. */
const PATIENT_MS = 60_000;

beforeEach(async () => {
  folder = await temporaryFolder();
  start();
});
afterEach(() => stop());

function start(loadLimit = PATIENT_MS): void {
  inspector = createInspector({ memory: 200_000_000, loadLimit, caseLimit: PATIENT_MS });
  const folders = [join(folder, "mappers")];
  versions = new KeptVersions({ folders, root: join(folder, "kept"), inspector, log: silentLog });
  const locate = (name: string, digest: string) => versions.locate(name, digest);
  pool = createMappingPool(OPTIONS, folders, silentLog, { locate, writable: [folder] });
}

async function stop(): Promise<void> {
  await inspector.close();
  await pool.close();
}

async function restart(loadLimit?: number): Promise<void> {
  await stop();
  start(loadLimit);
}

async function write(path: string, text: string): Promise<void> {
  const full = join(folder, "mappers", path);
  await mkdir(dirname(full), { recursive: true });
  await writeFile(full, text);
}

/** A mapper that gives one reading of this value. */
async function writeVersion(version: string, value: string, head = ""): Promise<void> {
  await write(
    "acme/mapper.ts",
    `import { defineMapper } from "headgate/mapper";
${head}
export default defineMapper({ name: "acme", summary: "of a test", version: "${version}", async map({ emit }) {
  emit({ target: { variableId: 1 }, date: "2026-03-01T00:00:00Z", value: ${value} });
} });`,
  );
}

async function writeCase(value: number): Promise<void> {
  await write("acme/cases/one/input.csv", "");
  const data = [{ date: "2026-03-01T00:00:00Z", value }];
  await write("acme/cases/one/expected.json", JSON.stringify([{ variableId: 1, data }]));
}

async function currentVersion(): Promise<string | undefined> {
  await versions.refresh(["acme"]);
  return (await versions.current("acme"))?.version;
}

const current = async (): Promise<MapperIdentity> => {
  const found = await versions.current("acme");
  if (found === null) throw new Error("there is no mapper acme");
  return found;
};

/** The value that this version of the mapper gives. */
async function valueBy(mapper: MapperIdentity): Promise<unknown> {
  const inputPath = join(folder, "input.csv");
  const segmentPath = join(folder, "segment");
  await writeFile(inputPath, "");
  const limits = { pointsMax: 100, bytesMax: 10_000 };
  const result = await onlyOne(
    pool.map(
      [
        {
          runId: "run",
          inputPath,
          fileName: "input.csv",
          filePath: "input.csv",
          binding: { mapper, settings: {}, rows: "strict", limits },
          segmentPath,
        },
      ],
      new AbortController().signal,
    ),
  );
  if (result.status === "failed") return result.reason;
  return JSON.parse((await readFile(segmentPath, "utf8")).split("\n")[0] ?? "")[0].data[0].value;
}

describe("a changed mapper", () => {
  it("is used when it loads and its cases pass, and the old version still runs, also after a restart", async () => {
    await writeVersion("1.0.0", "1");
    const first = await current();
    await writeVersion("2.0.0", "2");
    await writeCase(2);
    expect(await currentVersion()).toBe("2.0.0");
    const second = await current();
    expect(second.digest).not.toBe(first.digest);
    expect([await valueBy(first), await valueBy(second)]).toEqual([1, 2]);
    await restart();
    expect([await valueBy(first), await valueBy(second)]).toEqual([1, 2]);
    expect(versions.refused()).toEqual([]);
  });

  it("delays no file while it is checked: until the decision, the old version is current", async () => {
    await writeVersion("1.0.0", "1");
    await current();
    await writeVersion("2.0.0", "2");
    expect((await current()).version).toBe("1.0.0");
    await expect.poll(async () => (await current()).version, { timeout: 60_000 }).toBe("2.0.0");
  });

  it.each([
    ["that is broken", "export default {", /cannot be loaded/, PATIENT_MS],
    ["that ends its thread when it is loaded", "process.exit(0);", /ended its thread with exit code 0/, PATIENT_MS],
    ["that never ends loading", "for (;;);", /took longer than 0.3 s/, 300],
  ])("%s is refused with a warning, also after a restart", async (_, head, words, limitMs) => {
    await writeVersion("1.0.0", "1");
    const first = await current();
    await writeVersion("2.0.0", "2", head);
    await restart(limitMs);
    for (let starts = 0; starts < 2; starts += 1) {
      expect(await currentVersion()).toBe("1.0.0");
      const [refused, ...others] = versions.refused();
      expect(others).toEqual([]);
      expect(refused?.reason).toMatch(words);
      expect(refused?.reason).toContain(`new files are still mapped by version 1.0.0 (${first.digest.slice(0, 12)})`);
      await restart(limitMs);
    }
    expect(await valueBy(first)).toBe(1);
    await writeVersion("1.0.0", "1");
    expect(await currentVersion()).toBe("1.0.0");
    expect(versions.refused()).toEqual([]);
  });

  it("whose case fails is refused until the mapper or the case is corrected", async () => {
    await writeVersion("1.0.0", "1");
    await writeCase(1);
    await current();
    await writeVersion("2.0.0", "2");
    expect(await currentVersion()).toBe("1.0.0");
    expect(versions.refused()[0]?.reason).toMatch(
      /the case one of the mapper acme does not pass: expected .*1.* found .*2/,
    );
    await writeCase(2);
    expect(await currentVersion()).toBe("2.0.0");
    expect(versions.refused()).toEqual([]);
  });

  it("keeps its process from harming the check of others", async () => {
    await writeVersion("1.0.0", "1", "setTimeout(() => process.exit(1), 1);");
    await write(
      "other.ts",
      `import { defineMapper } from "headgate/mapper"; export default defineMapper({ name: ` +
        `"other", summary: "", map() {} });`,
    );
    await versions.refresh(["acme", "other"]);
    expect((await versions.current("other"))?.name).toBe("other");
  });
});

describe("the first version of a mapper", () => {
  it("is refused when its case fails", async () => {
    await writeVersion("1.0.0", "1");
    await writeCase(7);
    await expect(versions.current("acme")).rejects.toMatchObject({ name: "ConfigError", code: "HG-MAP-018" });
    expect(versions.refused()[0]?.reason).toContain("its files go into quarantine");
    expect(await versions.current("unheard-of")).toBeNull();
  });
});

describe("the copy of a version", () => {
  it("contains shared files and tables of the mapper, and finds the packages beside the original", async () => {
    await write("_shared/factor.ts", "export const factor = 3;");
    await write("acme/table.csv", "5");
    await write("node_modules/offsets/package.json", `{"name":"offsets","exports":"./main.js","type":"module"}`);
    await write("node_modules/offsets/main.js", "export const offset = 100;");
    const head = `import { readFileSync } from "node:fs";
      import { offset } from "offsets";
      import { factor } from "../_shared/factor.ts";
      const five = Number(readFileSync(new URL("./table.csv", import.meta.url), "utf8"));`;
    await writeVersion("1.0.0", "offset + factor * five", head);
    const first = await current();
    await write("_shared/factor.ts", "export const factor = 4;");
    expect(await currentVersion()).toBe("1.0.0");
    const second = await current();
    await write("acme/table.csv", "6");
    await versions.refresh(["acme"]);
    expect([await valueBy(first), await valueBy(second), await valueBy(await current())]).toEqual([115, 120, 124]);
  });

  it("is not used when its bytes differ", async () => {
    await writeVersion("1.0.0", "1");
    const first = await current();
    await writeVersion("2.0.0", "2");
    await currentVersion();
    const copy = join(folder, "kept", "acme", first.digest, "acme", "mapper.ts");
    await writeFile(copy, (await readFile(copy, "utf8")).replace("value: 1", "value: 9"));
    await restart();
    expect(await valueBy(first)).toMatchObject({ code: "HG-MAP-002" });
    await writeVersion("1.0.0", "1");
    expect(await valueBy(first)).toBe(1);
  });

  it("is kept while it is current or was used recently", async () => {
    await writeVersion("1.0.0", "1");
    const first = await current();
    await writeVersion("2.0.0", "2");
    await currentVersion();
    const second = await current();
    const old = new Date("2026-01-01T00:00:00Z");
    for (const { digest } of [first, second]) await utimes(join(folder, "kept", "acme", `${digest}.json`), old, old);
    expect(await versions.prune(old.getTime())).toBe(0);
    expect(await versions.prune(old.getTime() + 1)).toBe(1);
    expect(await versions.locate("acme", first.digest)).toBeNull();
    expect(await valueBy(second)).toBe(2);
  });
});

it("belongs to no version when the mapper is gone", async () => {
  await writeVersion("1.0.0", "1");
  const first = await current();
  await rm(join(folder, "mappers", "acme"), { recursive: true });
  expect(await versions.current("acme")).toBeNull();
  expect(await valueBy(first)).toBe(1);
});
