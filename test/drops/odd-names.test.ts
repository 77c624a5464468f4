/**
 * Names that are no UTF-8, and names with control characters: each has a record, and `names: latin-1` has
 * them taken.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { type Field, listed, never, openFtp, openLocal, sftpOf } from "./field.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(field: Promise<Field>): Promise<Field> {
  const open = await field;
  closing.push(() => open.close());
  return open;
}

/** A path below a folder, each character of it one byte. */
const raw = (folder: string, path: string) => Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, "latin1")]);

/** What shows `Zähler.csv` and `Süd/a.csv` in Latin-1. At a server the names lie on its disk in UTF-8. */
const KINDS = [
  { kind: "local", open: openLocal, isRaw: true },
  { kind: "sftp", open: sftpOf({ encoding: "latin1" }), isRaw: false },
  { kind: "ftp by MLSD", open: openFtp("auto", { encoding: "latin1" }), isRaw: false },
  { kind: "ftp by LIST", open: openFtp("list", { encoding: "latin1" }), isRaw: false },
] as const;

async function fieldOf({ open, isRaw }: (typeof KINDS)[number], names: string): Promise<Field> {
  const field = await opened(open({ names }));
  const folder = isRaw ? raw(field.root, "S\xFCd") : join(field.root, "Süd");
  mkdirSync(folder);
  for (const path of ["Z\xE4hler.csv", "S\xFCd/a.csv", "plain.csv"]) {
    const full = isRaw ? raw(field.root, path) : join(field.root, path);
    writeFileSync(full, `content of ${path}`);
  }
  return field;
}

describe.for(KINDS)("a name in Latin-1 at a $kind drop", (kind) => {
  test("is listed with its bytes when names are UTF-8, also for a folder, and the check reports it", async () => {
    const field = await fieldOf(kind, "utf-8");
    const paths = (await listed(field.drop)).map(({ path }) => path).sort();
    expect(paths).toEqual(["S\\xFCd/a.csv", "Z\\xE4hler.csv", "plain.csv"]);
    const found = await field.drop.probe(never);
    expect(found.filter(({ about }) => about === "names")).toMatchObject([
      {
        level: "warning",
        what: expect.stringContaining("not UTF-8"),
        hint: expect.stringContaining("`names: latin-1`"),
      },
    ]);
  });

  test("is fetched, archived and deleted when the drop has names: latin-1", async () => {
    const field = await fieldOf(kind, "latin-1");
    const entries = (await listed(field.drop)).toSorted((one, other) => (one.path < other.path ? -1 : 1));
    expect(entries.map(({ path }) => path)).toEqual(["Süd/a.csv", "Zähler.csv", "plain.csv"]);
    const copy = join(field.outside, "copy");
    for (const entry of entries) {
      expect(await field.drop.stat(entry.path, never)).toEqual(entry);
      await fetchFile(field.drop, entry, copy, never);
      expect(readFileSync(copy, "latin1")).toMatch(/^content of /);
    }
    const [inFolder, meter, plain] = entries;
    if (inFolder === undefined || meter === undefined || plain === undefined) return expect.unreachable();
    const both = await field.drop.fetch([plain, meter], join(field.outside, "both"), never);
    expect(both).toMatchObject([{ value: { bytes: plain.size } }, { value: { bytes: meter.size } }]);
    const to = "archive/Süd/a.1.csv";
    expect(await finishFile(field.drop, inFolder, { action: "archive", to }, never)).toBe("done");
    expect(await finishFile(field.drop, meter, { action: "delete" }, never)).toBe("done");
    expect((await listed(field.drop)).map(({ path }) => path)).toEqual(["plain.csv"]);
    const archived = kind.isRaw ? raw(field.root, "archive/S\xFCd/a.1.csv") : join(field.root, to);
    expect(existsSync(archived)).toBe(true);
    const left = await readdir(field.root, { encoding: "buffer" });
    expect(left.some((name) => name.includes("hler"))).toBe(false);
  });
});

describe.for([KINDS[0], { kind: "sftp", open: sftpOf({}), isRaw: false }] as const)(
  "a name with control characters at a $kind drop",
  ({ open }) => {
    test("is listed with escapes", async () => {
      const field = await opened(open({}));
      for (const name of ["a\nb.csv", "a\x1B[2Jb.csv", "größe.csv"]) writeFileSync(join(field.root, name), "x");
      const paths = (await listed(field.drop)).map(({ path }) => path).sort();
      expect(paths).toEqual(["a\\x0Ab.csv", "a\\x1B[2Jb.csv", "größe.csv"]);
    });
  },
);
