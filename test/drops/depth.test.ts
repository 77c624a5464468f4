import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { never, openFtp, openLocal, openSftp } from "./field.ts";

describe.each([
  ["a local drop", openLocal],
  ["an SFTP drop", openSftp],
  ["an FTP drop", openFtp("auto")],
])("%s", (_, open) => {
  test("returns the files above folders that are too deep, and names the first of these folders", async () => {
    const field = await open({ depthMax: 2 });
    try {
      await field.write("a/b/found.csv", "x");
      await field.write("a/b/c/missed.csv", "x");
      const found: string[] = [];
      const listing = (async () => {
        for await (const entries of field.drop.list(never)) found.push(...entries.map(({ path }) => path));
      })();
      await expect(listing).rejects.toMatchObject({
        code: "HG-DROP-030",
        message: expect.stringContaining("the folder a/b/c of drop"),
      });
      expect(found).toEqual(["a/b/found.csv"]);
    } finally {
      await field.close();
    }
  });

  test("lists every folder within the limit, and reports a deeper one when it appears", async () => {
    const field = await open({ depthMax: 3 });
    try {
      await field.write("a/b/c/found.csv", "x");
      const list = async () => (await Array.fromAsync(field.drop.list(never))).flat().map(({ path }) => path);
      expect(await list()).toEqual(["a/b/c/found.csv"]);
      await mkdir(join(field.root, "a/b/c/d"));
      await symlink(field.root, join(field.root, "loop"));
      await expect(list()).rejects.toMatchObject({ code: "HG-DROP-030" });
    } finally {
      await field.close();
    }
  });
});

test.each([
  ["none", 1],
  ["explicit", 0],
])("an FTP drop with tls %s warns %i times when it is opened", async (tls, count) => {
  const lines: string[] = [];
  const log = createLog("warn", { write: (line) => void lines.push(line) });
  const options = dropOptions.parse({
    kind: "ftp",
    name: "plant",
    host: "ftp.example.org",
    username: "u",
    password: "p",
    tls,
  });
  await createDrop(options, { log });
  expect(lines.filter((line) => line.includes("go over the network readably"))).toHaveLength(count);
});
