/**
 * What every kind of drop must do with lists of files: each file has its own result, or its own reason why
 * there is none.
 */
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { HeadgateError } from "#core/errors.ts";
import type { Settled } from "#core/promises.ts";
import { type FinishPlanned, fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import type { FileEntry } from "#gateway/model.ts";
import { entryAt, type Field, listed, never, type OpenField } from "./field.ts";

const EARLIER = new Date("2026-03-01T00:15:00Z");
const LATER = new Date("2026-03-01T08:45:00Z");
const GOOD = ["a.csv", "in/b.csv", "in/deep er/c.csv"];

/** `hasLinks`: symbolic links of the root are those of the drop. */
export function takingLists(of: () => Field, open: OpenField, hasLinks: boolean): void {
  fetchingLists(of, open);
  finishingLists(of);
  givingUp(of);
  if (hasLinks) followingNoLinks(of);
}

const fetchAll = (field: Field, entries: readonly FileEntry[], signal = never) =>
  field.drop.fetch(entries, join(field.outside, "list"), signal);
const finishAll = (field: Field, planned: readonly FinishPlanned[], signal = never) =>
  field.drop.finish(planned, signal);
const archive = (entry: FileEntry, tag = "run1") => ({
  entry,
  plan: planFinish({ action: "archive", to: "archive/done" }, entry, tag),
});
const everything = async (field: Field) => (await readdir(field.root, { recursive: true })).toSorted();

/** The result, or the code of the reason. */
function briefly<Result>(settled: readonly Settled<Result>[]): readonly unknown[] {
  return settled.map((one) => {
    if (one.status === "fulfilled") return one.value;
    if (one.reason instanceof HeadgateError) return one.reason.code;
    throw one.reason;
  });
}

async function layGood(field: Field): Promise<FileEntry[]> {
  for (const name of GOOD) await field.write(name, `content of ${name}`, EARLIER);
  return Promise.all(GOOD.map((name) => entryAt(field.drop, name)));
}

function fetchingLists(of: () => Field, open: OpenField): void {
  test("fetches a list of files into one file, each with the same result as by itself", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `in/${at}.csv`);
    for (const [at, name] of names.entries()) await of().write(name, name.repeat(at * 10));
    const entries = await Promise.all(names.map((name) => entryAt(of().drop, name)));
    // Something that lies there is overwritten.
    await writeFile(join(of().outside, "list"), "x".repeat(10));
    for (const round of ["over another file", "where nothing is"]) {
      const fetched = briefly(await fetchAll(of(), entries));
      const list = await readFile(join(of().outside, "list"));
      for (const [at, entry] of entries.entries()) {
        const { offset, ...file } = fetched[at] as { offset: number };
        expect(file, round).toEqual(await fetchFile(of().drop, entry, join(of().outside, "alone"), never));
        expect(list.toString("utf8", offset, offset + entry.size)).toBe(names[at]?.repeat(at * 10));
      }
      await rm(join(of().outside, "list"));
    }
  });

  test.for<[string, (field: Field) => Promise<unknown>, string]>([
    ["grew", (field) => field.write("x.csv", "content and more", EARLIER), "HG-DROP-008"],
    ["was written again", (field) => field.write("x.csv", "CONTENT", LATER), "HG-DROP-008"],
    ["vanished", (field) => rm(join(field.root, "x.csv")), "HG-DROP-006"],
  ])("reports why it did not fetch a file of a list that %s, and fetches the others", async ([, change, code]) => {
    const good = await layGood(of());
    await of().write("x.csv", "content", EARLIER);
    const bad = await entryAt(of().drop, "x.csv");
    await change(of());
    const fetched = await fetchAll(of(), [...good.slice(0, 1), bad, ...good.slice(1)]);
    await expectGoodBut(of(), briefly(fetched), code);
  });

  test("reports why it refused each file of a list that is too large, or whose path is invalid", async () => {
    const field = await open({ maxFileSize: "300KB" });
    try {
      for (const [name, bytes] of [
        ["small.csv", 10],
        ["piece.csv", 290_000],
        ["large.csv", 310_000],
      ] as const)
        await field.write(name, Buffer.alloc(bytes));
      const [small, piece, large] = await Promise.all(
        ["small.csv", "piece.csv", "large.csv"].map((name) => entryAt(field.drop, name)),
      );
      if (small === undefined || piece === undefined || large === undefined) throw new Error("none");
      await writeFile(join(field.outside, "outside.csv"), "0123456789");
      const wanted = [piece, large, { ...small, path: "../outside.csv" }, small];
      const fetched = briefly(await fetchAll(field, wanted));
      expect(fetched).toMatchObject([{ bytes: 290_000 }, "HG-DROP-010", "HG-DROP-005", { bytes: 10 }]);
      const below = await field.drop.fetch([small, piece], join(field.outside, "outside.csv/list"), never);
      expect(briefly(below)).toEqual(["HG-DROP-013", "HG-DROP-013"]);
    } finally {
      await field.close();
    }
  });
}

/** Of the list `good[0]`, bad, `good[1]`, `good[2]`. */
async function expectGoodBut(field: Field, fetched: readonly unknown[], code: string): Promise<void> {
  expect(fetched[1]).toBe(code);
  const list = await readFile(join(field.outside, "list"), "utf8");
  const contents = [fetched[0], fetched[2], fetched[3]].map((one) => {
    const { offset, bytes } = one as { offset: number; bytes: number };
    return list.slice(offset, offset + bytes);
  });
  expect(contents).toEqual(GOOD.map((name) => `content of ${name}`));
}

function finishingLists(of: () => Field): void {
  test("archives, deletes and leaves a list of files, and returns the same when it is repeated", async () => {
    const good = await layGood(of());
    const wanted = [
      ...good.map((entry) => archive(entry)),
      ...(await Promise.all(
        ["gone.csv", "in/gone.csv"].map(async (name) => {
          await of().write(name, name);
          return { entry: await entryAt(of().drop, name), plan: { action: "delete" } as const };
        }),
      )),
    ];
    await of().write("stays.csv", "x");
    const stays = { entry: await entryAt(of().drop, "stays.csv"), plan: { action: "leave" } as const };
    const done = [stays, ...wanted].map(() => "done");
    expect(briefly(await finishAll(of(), [stays, ...wanted]))).toEqual(done);
    const left = await everything(of());
    expect(left).toEqual([
      "archive",
      "archive/done",
      "archive/done/a.run1.csv",
      "archive/done/in",
      "archive/done/in/b.run1.csv",
      "archive/done/in/deep er",
      "archive/done/in/deep er/c.run1.csv",
      "in",
      "in/deep er",
      "stays.csv",
    ]);
    expect(await readFile(join(of().root, "archive/done/in/b.run1.csv"), "utf8")).toBe("content of in/b.csv");
    // As after an answer that was lost.
    expect(briefly(await finishAll(of(), [stays, ...wanted]))).toEqual(done);
    expect(await everything(of())).toEqual(left);
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(["stays.csv"]);
  });

  test.for<[string, "archive" | "delete", (field: Field) => Promise<unknown>, unknown]>([
    ["holds other content", "archive", (field) => field.write("x.csv", "other", LATER), "changed"],
    ["holds other content", "delete", (field) => field.write("x.csv", "other", LATER), "changed"],
    ["is gone", "archive", (field) => rm(join(field.root, "x.csv")), "gone"],
    ["is gone", "delete", (field) => rm(join(field.root, "x.csv")), "done"],
  ])("reports a file of a list that it %s (%s)", async ([, action, change, ending]) => {
    const good = await layGood(of());
    await of().write("x.csv", "content", EARLIER);
    const entry = await entryAt(of().drop, "x.csv");
    await change(of());
    const bad = action === "archive" ? archive(entry) : { entry, plan: { action } as const };
    const before = await readFile(join(of().root, "x.csv"), "utf8").catch(() => null);
    const ended = await finishAll(of(), [bad, ...good.map((one) => archive(one))]);
    expect(briefly(ended)).toEqual([ending, "done", "done", "done"]);
    expect(await readFile(join(of().root, "x.csv"), "utf8").catch(() => null)).toBe(before);
  });

  test("never overwrites a file in the archive by one of a list", async () => {
    const [other] = await layGood(of());
    await of().write("x.csv", "content", EARLIER);
    await of().write("archive/done/x.run1.csv", "of somebody else");
    const wanted = archive(await entryAt(of().drop, "x.csv"));
    if (other === undefined) throw new Error("none");
    expect(briefly(await finishAll(of(), [wanted, archive(other)]))).toEqual(["HG-DROP-009", "done"]);
    expect(await readFile(join(of().root, "x.csv"), "utf8")).toBe("content");
    expect(await readFile(join(of().root, "archive/done/x.run1.csv"), "utf8")).toBe("of somebody else");
  });
}

function followingNoLinks(of: () => Field): void {
  test.for<[string, string, (field: Field) => Promise<unknown>, string]>([
    ["became a link", "x.csv", becomeLink, "HG-DROP-007"],
    ["is in a folder that became a link", "in2/x.csv", (field) => leadOut(field, "in2"), "HG-DROP-005"],
  ])("refuses a file of a list that %s, and fetches the others", async ([, path, change, code]) => {
    const good = await layGood(of());
    await of().write(path, "content", EARLIER);
    const bad = await entryAt(of().drop, path);
    await change(of());
    const fetched = await fetchAll(of(), [...good.slice(0, 1), bad, ...good.slice(1)]);
    await expectGoodBut(of(), briefly(fetched), code);
  });

  test("moves no file of a list out of the drop by an archive folder that is a link", async () => {
    const [entry] = await layGood(of());
    if (entry === undefined) throw new Error("none");
    await mkdir(join(of().outside, "elsewhere"));
    await symlink(join(of().outside, "elsewhere"), join(of().root, "archive"));
    const out = { entry, plan: { action: "archive", to: "../x" } } as const;
    expect(briefly(await finishAll(of(), [archive(entry), out]))).toEqual(["HG-DROP-005", "HG-DROP-005"]);
    expect(await readdir(join(of().outside, "elsewhere"))).toEqual([]);
    expect(await entryAt(of().drop, entry.path)).toEqual(entry);
  });

  test("archives a file of a list whose copy is in the archive already", async () => {
    const [other] = await layGood(of());
    await of().write("x.csv", "content", EARLIER);
    await of().write("archive/done/x.run1.csv", "content");
    const wanted = archive(await entryAt(of().drop, "x.csv"));
    if (other === undefined) throw new Error("none");
    expect(briefly(await finishAll(of(), [wanted, archive(other)]))).toEqual(["done", "done"]);
  });
}

/** A file that is no file any more, or not below the root. */
async function becomeLink(field: Field): Promise<void> {
  await writeFile(join(field.outside, "outside.csv"), "content");
  await rm(join(field.root, "x.csv"));
  await symlink(join(field.outside, "outside.csv"), join(field.root, "x.csv"));
}

async function leadOut(field: Field, folder: string): Promise<void> {
  await rename(join(field.root, folder), join(field.outside, folder));
  await symlink(join(field.outside, folder), join(field.root, folder));
}

function givingUp(of: () => Field): void {
  test("fetches nothing of a cancelled list, and the whole next list", async () => {
    const good = await layGood(of());
    const rejected = good.map(() => "rejected");
    const statuses = (settled: readonly Settled<unknown>[]) => settled.map(({ status }) => status);
    expect(statuses(await fetchAll(of(), good, AbortSignal.abort()))).toEqual(rejected);
    const given = new AbortController();
    const fetched = fetchAll(of(), good, given.signal);
    given.abort();
    expect(statuses(await fetched)).toEqual(rejected);
    expect(briefly(await fetchAll(of(), good))).toMatchObject(good.map(({ size }) => ({ bytes: size })));
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(GOOD);
  });

  test("moves no more files of a list after it was cancelled, and reports which it had moved", async () => {
    const good = await layGood(of());
    const given = new AbortController();
    const ended = finishAll(
      of(),
      good.map((entry) => archive(entry)),
      given.signal,
    );
    given.abort();
    const left = (await ended).flatMap(({ status }, at) => (status === "rejected" ? [good[at]?.path] : []));
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(left);
    const again = good.map((entry) => finishFile(of().drop, entry, archive(entry).plan, never));
    expect(await Promise.all(again)).toEqual(["done", "done", "done"]);
  });

  test("processes several lists at the same time", async () => {
    const good = await layGood(of());
    const [fetched, other] = await Promise.all([
      fetchAll(of(), good),
      of().drop.fetch(good, join(of().outside, "other"), never),
    ]);
    const whole = good.map(({ size }) => ({ bytes: size }));
    expect(briefly(fetched)).toMatchObject(whole);
    expect(briefly(other)).toMatchObject(whole);
  });
}
