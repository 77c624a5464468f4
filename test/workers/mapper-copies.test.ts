/** Copies of mappers, asked for by many at once, and on a disk that refuses. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { locateMapper, readMapper } from "#mapping/mapper-files.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { createMapperCopies } from "#mapping/workers/mapper-copies.ts";
import { temporaryFolder } from "../mapping/kit.ts";

const now = () => Date.UTC(2026, 2, 1);

it("is created once, and completely, for all concurrent callers", async () => {
  const folder = await temporaryFolder();
  const modulePath = (await locateMapper([BUNDLED_FOLDER], "delimited")) ?? "";
  for (let round = 0; round < 5; round++) {
    const copies = createMapperCopies(join(folder, `round-${round}`), now);
    const content = await readMapper(modulePath);
    const expected = copies.expected(modulePath, content);
    const late = new Promise((resolve) => setImmediate(resolve)).then(() => copies.keep(modulePath, content));
    const made = await Promise.all([...Array.from({ length: 8 }, () => copies.keep(modulePath, content)), late]);
    expect(new Set(made.map(({ modulePath: path, digest }) => `${path} ${digest}`)).size).toBe(1);
    expect(await copies.find("delimited", content.digest)).toEqual(made[0]);
    expect(expected).toEqual(made[0]);
  }
});

it("that cannot be written is a fault of the disk, not of the file that is being mapped", async () => {
  const folder = await temporaryFolder();
  const modulePath = (await locateMapper([BUNDLED_FOLDER], "standard")) ?? "";
  const blocked = join(folder, "kept", "standard");
  await mkdir(dirname(blocked), { recursive: true });
  await writeFile(blocked, "no folder");
  const copies = createMapperCopies(join(folder, "kept"), now);
  await expect(copies.keep(modulePath, await readMapper(modulePath))).rejects.toMatchObject({
    name: "TransientError",
    code: "HG-SPOOL-004",
  });
});
