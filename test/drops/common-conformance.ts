/**
 * What every kind of drop must do, whether files are put at paths of it or sent to it: a test uses the path
 * that it is answered.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { RejectedError, TransientError } from "#core/errors.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import type { FileEntry, FinishPlan } from "#gateway/model.ts";
import { entryAt, type Field, listed, never } from "./field.ts";

const EARLIER = new Date("2026-03-01T00:15:00Z");

export function conformsAsEvery(of: () => Field): void {
  listing(of);
  fetching(of);
  finishing(of);
  clearing(of);
  refusing(of);
}

/** For a drop whose files stay where they are. */
export function conformsAsSource(of: () => Field): void {
  listing(of);
  fetching(of);
  refusing(of);
}

async function writeEntry(field: Field, path: string, content: string | Uint8Array): Promise<FileEntry> {
  return await entryAt(field.drop, await field.write(path, content, EARLIER));
}

/** Null when nothing is there. */
async function contentOf({ drop, outside }: Field, path: string): Promise<string | null> {
  const entry = await drop.stat(path, never);
  if (entry === null) return null;
  await fetchFile(drop, entry, join(outside, "content"), never);
  return await readFile(join(outside, "content"), "utf8");
}

function listing(of: () => Field): void {
  test("lists every file, with its size, and nothing else", async () => {
    const names = ["a.csv", "with space.csv", "größe 電力.csv", "in/b.csv", "in/deep er/c.csv", ".hidden", "[x].csv"];
    const sizes = new Map<string, number>();
    for (const name of names) sizes.set(await of().write(name, name), Buffer.byteLength(name));
    await mkdir(join(of().root, "empty"));
    const entries = await listed(of().drop);
    expect(entries.map((entry) => entry.path)).toEqual([...sizes.keys()].toSorted());
    for (const { path, size } of entries) expect(size).toBe(sizes.get(path));
  });

  test("returns the same for a file by stat as by listing, and null for a path that is not a file", async () => {
    const path = await of().write("in/a b.csv", "one", EARLIER);
    const [entry] = await listed(of().drop);
    expect(await of().drop.stat(path, never)).toEqual(entry);
    expect(await of().drop.stat(dirname(path), never)).toBeNull();
    expect(await of().drop.stat(`${dirname(path)}/none.csv`, never)).toBeNull();
    expect(await of().drop.stat("nowhere/none.csv", never)).toBeNull();
  });

  test("lists many files whole", async () => {
    const paths = await Promise.all(
      Array.from({ length: of().manyFiles }, (_, at) => of().write(`many/${at}.csv`, String(at))),
    );
    expect(new Set((await listed(of().drop)).map((entry) => entry.path))).toEqual(new Set(paths));
  });
}

function fetching(of: () => Field): void {
  test.for([0, 1, 5_000_000])("fetches %i bytes with their digest", async (size) => {
    const content = randomBytes(size);
    const entry = await writeEntry(of(), "in/a.bin", content);
    const copy = join(of().outside, "copies", "copy");
    const fetched = await fetchFile(of().drop, entry, copy, never);
    expect(fetched).toEqual({ bytes: size, sha256: createHash("sha256").update(content).digest("hex") });
    expect((await readFile(copy)).equals(content)).toBe(true);
  });

  test("fetches several files concurrently, and overwrites what an earlier attempt left", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `${at}.csv`);
    await Promise.all(
      names.map(async (name) => {
        const entry = await writeEntry(of(), name, name.repeat(1000));
        const copy = join(of().outside, name);
        await writeFile(copy, "left by an earlier attempt, and longer".repeat(1000));
        await fetchFile(of().drop, entry, copy, never);
        expect(await readFile(copy, "utf8")).toBe(name.repeat(1000));
      }),
    );
  });

  test("rejects a file that vanished", async () => {
    const entry = await writeEntry(of(), "a.csv", "content");
    await of().remove(entry.path);
    const fetched = fetchFile(of().drop, entry, join(of().outside, "copy"), never);
    await expect(fetched).rejects.toMatchObject({ code: "HG-DROP-006" });
  });

  test("distinguishes a fault of the spool from a fault of the drop", async () => {
    const entry = await writeEntry(of(), "a.csv", "content");
    await writeFile(join(of().outside, "file"), "not a folder");
    const fetched = fetchFile(of().drop, entry, join(of().outside, "file", "copy"), never);
    await expect(fetched).rejects.toMatchObject({ code: "HG-DROP-013" });
  });
}

function finishing(of: () => Field): void {
  const archive = (entry: FileEntry, tag = "run1") =>
    planFinish({ action: "archive", to: "archive/done" }, entry, tag) as Extract<FinishPlan, { action: "archive" }>;

  test("archives, and returns the same when it is repeated", async () => {
    const entry = await writeEntry(of(), "in/a b.csv", "content");
    const plan = archive(entry);
    expect(await finishFile(of().drop, entry, plan, never)).toBe("done");
    expect(await finishFile(of().drop, entry, plan, never)).toBe("done");
    expect(await contentOf(of(), plan.to)).toBe("content");
    expect(await contentOf(of(), entry.path)).toBeNull();
    expect(await listed(of().drop)).toEqual([]);
  });

  test("never overwrites a file in the archive", async () => {
    const entry = await writeEntry(of(), "in/a b.csv", "content");
    const other = await writeEntry(of(), "in/other.csv", "of somebody else");
    const plan = archive(entry);
    expect(await finishFile(of().drop, other, plan, never)).toBe("done");
    await expect(finishFile(of().drop, entry, plan, never)).rejects.toMatchObject({ code: "HG-DROP-009" });
    expect(await contentOf(of(), plan.to)).toBe("of somebody else");
    expect(await contentOf(of(), entry.path)).toBe("content");
  });

  test("deletes, and returns the same when it is repeated", async () => {
    const entry = await writeEntry(of(), "in/a b.csv", "content");
    expect(await finishFile(of().drop, entry, { action: "delete" }, never)).toBe("done");
    expect(await finishFile(of().drop, entry, { action: "delete" }, never)).toBe("done");
    expect(await contentOf(of(), entry.path)).toBeNull();
    expect(await listed(of().drop)).toEqual([]);
  });

  test("leaves files that the plan leaves, and reports a missing file when it should archive", async () => {
    const entry = await writeEntry(of(), "in/a b.csv", "content");
    expect(await finishFile(of().drop, entry, { action: "leave" }, never)).toBe("done");
    expect(await listed(of().drop)).toEqual([entry]);
    await of().remove(entry.path);
    expect(await finishFile(of().drop, entry, archive(entry), never)).toBe("gone");
  });

  test("finishes each file of a list by its own plan", async () => {
    const entries = await Promise.all(
      ["a.csv", "b.csv", "c.csv"].map((name) => writeEntry(of(), name, `content of ${name}`)),
    );
    const [left, deleted, archived] = entries;
    if (left === undefined || deleted === undefined || archived === undefined) throw new Error("none");
    const planned = [
      { entry: left, plan: { action: "leave" } as const },
      { entry: deleted, plan: { action: "delete" } as const },
      { entry: archived, plan: archive(archived) },
      { entry: archived, plan: { action: "archive", to: "../out.csv" } as const },
    ];
    const settled = await of().drop.finish(planned, never);
    expect(settled).toMatchObject([
      { value: "done" },
      { value: "done" },
      { value: "done" },
      { reason: { code: "HG-DROP-005" } },
    ]);
    expect(await listed(of().drop)).toEqual([left]);
    expect(await contentOf(of(), archive(archived).to)).toBe("content of c.csv");
  });
}

function clearing(of: () => Field): void {
  test("deletes old files of its archive, a few at a time, and no others", async () => {
    const names = ["a.old.csv", "in/b.old.csv", "in/c.old.csv", "in/d.new.csv"];
    const to = (name: string) => `archive/done/${name}`;
    for (const name of names) {
      const entry = await writeEntry(of(), name, "x");
      expect(await finishFile(of().drop, entry, { action: "archive", to: to(name) }, never)).toBe("done");
    }
    const isOld = (path: string) => path.includes(".old.");
    const clear = () => of().drop.clearArchive?.({ folder: "archive/done", isOld, limit: 2 }, never);
    expect(await clear()).toBe(2);
    expect(await clear()).toBe(1);
    expect(await clear()).toBe(0);
    const left = await Promise.all(names.map((name) => contentOf(of(), to(name))));
    expect(left).toEqual([null, null, null, "x"]);
    expect(await of().drop.clearArchive?.({ folder: "none", isOld, limit: 2 }, never)).toBe(0);
  });
}

function refusing(of: () => Field): void {
  test.for(["../outside.csv", "/etc/passwd", "in/../../outside.csv", "", "in//a", "a\nb", "."])(
    "refuses the path %j",
    async (path) => {
      const { drop, outside } = of();
      await writeFile(join(outside, "outside.csv"), "secret");
      const entry = { path, size: 6, mtime: "1" };
      const refusal = { code: "HG-DROP-005" };
      await expect(drop.stat(path, never)).rejects.toMatchObject(refusal);
      await expect(fetchFile(drop, entry, join(outside, "copy"), never)).rejects.toThrow(RejectedError);
      await expect(finishFile(drop, entry, { action: "delete" }, never)).rejects.toMatchObject(refusal);
      const fine = { ...entry, path: "a.csv" };
      const out = { action: "archive", to: path } as const;
      await expect(finishFile(drop, fine, out, never)).rejects.toMatchObject(refusal);
    },
  );

  test("ends at once when its caller aborts, and continues with the next call", async () => {
    const entry = await writeEntry(of(), "a.csv", "content");
    const { drop, outside } = of();
    const given = AbortSignal.abort();
    await expect(drop.stat(entry.path, given)).rejects.toThrow(TransientError);
    await expect(fetchFile(drop, entry, join(outside, "copy"), given)).rejects.toThrow(TransientError);
    await expect(Array.fromAsync(drop.list(given))).rejects.toThrow(TransientError);
    expect(await drop.stat(entry.path, never)).toEqual(entry);
  });

  test("fails running calls as transient when it is closed", async () => {
    const entry = await writeEntry(of(), "a.bin", randomBytes(5_000_000));
    const fetched = fetchFile(of().drop, entry, join(of().outside, "copy"), never);
    const ended = expect(fetched).rejects.toThrow(TransientError);
    await of().drop.close();
    await ended;
  });
}
