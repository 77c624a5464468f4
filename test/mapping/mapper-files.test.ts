import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestMapper, mapperNames } from "#mapping/mapper-files.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(path: string, text: string): Promise<string> {
  await mkdir(join(folder, path, ".."), { recursive: true });
  await writeFile(join(folder, path), text);
  return join(folder, path);
}

describe("the digest of a mapper", () => {
  it("changes with a file that the mapper shares with others, also when another shared file imports it", async () => {
    await write("_shared/marks.ts", "export const mark = 1;");
    await write("_shared/rows.ts", 'export { mark } from "./marks.ts";');
    const mapper = await write("acme/mapper.ts", 'import { mark } from "../_shared/rows.ts";');
    const before = await digestMapper(mapper);
    await write("_shared/marks.ts", "export const mark = 2;");
    expect(await digestMapper(mapper)).not.toBe(before);
  });

  it("does not depend on the name of the module, also for files that import each other", async () => {
    await write("acme/columns.ts", "export const columns = 1;");
    const mapper = await write("acme/mapper.ts", 'import { columns } from "./columns.ts";');
    expect(await digestMapper(relative(process.cwd(), mapper))).toBe(await digestMapper(mapper));
  });

  it("changes with a file that a mapper of one file imports", async () => {
    await write("marks.ts", "export const mark = 1;");
    const mapper = await write("acme.ts", 'const { mark } = await import("./marks.ts");');
    const before = await digestMapper(mapper);
    await write("marks.ts", "export const mark = 2;");
    expect(await digestMapper(mapper)).not.toBe(before);
  });

  it("stays the same when something else in the folder of mappers changes", async () => {
    const mapper = await write("acme/mapper.ts", 'import { z } from "headgate/mapper";');
    const before = await digestMapper(mapper);
    await write("_shared/rows.ts", "export const rows = 1;");
    await write("acme/cases/one/input.json", "[]");
    expect(await digestMapper(mapper)).toBe(before);
  });

  it("ends when files import each other", async () => {
    await write("_shared/a.ts", 'import "./b.ts";');
    await write("_shared/b.ts", 'import "./a.ts";');
    const mapper = await write("acme/mapper.ts", 'import "../_shared/a.ts";');
    expect(await digestMapper(mapper)).toMatch(/^[0-9a-f]{64}$/);
  });
});

it("does not treat a folder that begins with an underscore as a mapper", async () => {
  await write("_shared/mapper.ts", "");
  await write("acme/mapper.ts", "");
  expect(await mapperNames([folder])).toEqual(["acme"]);
});
