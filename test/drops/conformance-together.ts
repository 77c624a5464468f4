/** What a drop must do that takes many files at once: what it does alone, or nothing that it could not go on from alone. */
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { planFinish } from "../../src/drops/archive-name.ts";
import type { FileEntry, FinishPlan } from "../../src/model.ts";
import { entryAt, type Field, listed, never, type OpenField } from "./field.ts";

const EARLIER = new Date("2026-03-01T00:15:00Z");
const LATER = new Date("2026-03-01T08:45:00Z");
const GOOD = ["a.csv", "in/b.csv", "in/deep er/c.csv"];

export function takingTogether(of: () => Field, open: OpenField): void {
  fetchingTogether(of, open);
  finishingTogether(of);
  givingUpTogether(of);
}

const fetchAll = (field: Field, entries: readonly FileEntry[], signal = never) =>
  field.drop.fetchTogether?.(entries, join(field.outside, "together"), signal);
const finishAll = (field: Field, wanted: readonly { entry: FileEntry; plan: FinishPlan }[], signal = never) =>
  field.drop.finishTogether?.(wanted, signal);
const archive = (entry: FileEntry, tag = "run1") => ({
  entry,
  plan: planFinish({ action: "archive", to: "archive/done" }, entry, tag),
});
const everything = async (field: Field) => (await readdir(field.root, { recursive: true })).toSorted();

async function layGood(field: Field): Promise<FileEntry[]> {
  for (const name of GOOD) await field.write(name, `content of ${name}`, EARLIER);
  return Promise.all(GOOD.map((name) => entryAt(field.drop, name)));
}

function fetchingTogether(of: () => Field, open: OpenField): void {
  test("fetches many files at once, as it fetches each alone", async () => {
    const names = Array.from({ length: 70 }, (_, at) => `in/${at}.csv`);
    for (const [at, name] of names.entries()) await of().write(name, name.repeat(at * 10));
    const entries = await Promise.all(names.map((name) => entryAt(of().drop, name)));
    const fetched = await fetchAll(of(), entries);
    const together = await readFile(join(of().outside, "together"));
    for (const [at, entry] of entries.entries()) {
      const { offset = -1, ...file } = fetched?.[at] ?? {};
      expect(file).toEqual(await of().drop.fetch(entry, join(of().outside, "alone"), never));
      expect(together.toString("utf8", offset, offset + entry.size)).toBe(names[at]?.repeat(at * 10));
    }
  });

  test.for<[string, (field: Field) => Promise<unknown>, string]>([
    ["grew", (field) => field.write("x.csv", "content and more", EARLIER), "HG-DROP-008"],
    ["was written again", (field) => field.write("x.csv", "CONTENT", LATER), "HG-DROP-008"],
    ["vanished", (field) => rm(join(field.root, "x.csv")), "HG-DROP-006"],
    ["became a link", becomeLink, "HG-DROP-007"],
    ["is in a folder that became a link", (field) => leadOut(field, "in2"), "HG-DROP-005"],
  ])("leaves a file that %s to be refused alone, and fetches the others", async ([, change, code]) => {
    const path = code === "HG-DROP-005" ? "in2/x.csv" : "x.csv";
    const good = await layGood(of());
    await of().write(path, "content", EARLIER);
    const bad = await entryAt(of().drop, path);
    await change(of());
    const fetched = await fetchAll(of(), [...good.slice(0, 1), bad, ...good.slice(1)]);
    expect(fetched?.map((one) => one?.bytes ?? null)).toEqual([
      good[0]?.size,
      null,
      good[1]?.size,
      good[2]?.size,
    ]);
    const alone = of().drop.fetch(bad, join(of().outside, "alone"), never);
    await expect(alone).rejects.toMatchObject({ code });
  });

  test("leaves what is too large, of a path that is none, or cannot be written", async () => {
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
      const fetched = await fetchAll(field, wanted);
      expect(fetched?.map((one) => one?.bytes ?? null)).toEqual([null, null, null, 10]);
      // What lies at the destination is somebody else's, or there is no such folder.
      for (const destination of ["together", "outside.csv/together"])
        expect(await field.drop.fetchTogether?.([small], join(field.outside, destination), never)).toEqual([
          null,
        ]);
      expect((await field.drop.fetch(piece, join(field.outside, "piece"), never)).bytes).toBe(290_000);
    } finally {
      await field.close();
    }
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

function finishingTogether(of: () => Field): void {
  test("archives, deletes and leaves many files at once, as it does alone, and goes on alone", async () => {
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
    const ended = await finishAll(of(), [stays, ...wanted]);
    expect(ended).toEqual(["done", "done", "done", "done", "done", "done"]);
    const left = await everything(of());
    expect(left).toEqual(
      [
        "archive",
        "archive/done",
        "archive/done/a.run1.csv",
        "archive/done/in",
        "archive/done/in/b.run1.csv",
      ].concat([
        "archive/done/in/deep er",
        "archive/done/in/deep er/c.run1.csv",
        "in",
        "in/deep er",
        "stays.csv",
      ]),
    );
    expect(await readFile(join(of().root, "archive/done/in/b.run1.csv"), "utf8")).toBe("content of in/b.csv");
    // As after an answer that was lost.
    for (const { entry, plan } of [stays, ...wanted])
      expect(await of().drop.finish(entry, plan, never)).toBe("done");
    expect(await everything(of())).toEqual(left);
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(["stays.csv"]);
  });

  test.for<[string, "archive" | "delete", (field: Field) => Promise<unknown>, unknown]>([
    ["holds other content", "archive", (field) => field.write("x.csv", "other", LATER), "changed"],
    ["holds other content", "delete", (field) => field.write("x.csv", "other", LATER), "changed"],
    ["is gone", "archive", (field) => rm(join(field.root, "x.csv")), "gone"],
    ["is gone", "delete", (field) => rm(join(field.root, "x.csv")), "done"],
    ["was archived", "archive", (field) => field.drop.finish(...lost(field)), "done"],
  ])("leaves a file that %s to be finished alone (%s)", async ([, action, change, ending]) => {
    const good = await layGood(of());
    await of().write("x.csv", "content", EARLIER);
    const entry = await entryAt(of().drop, "x.csv");
    known.set(of(), entry);
    await change(of());
    const bad = action === "archive" ? archive(entry) : { entry, plan: { action } as const };
    const before = await readFile(join(of().root, "x.csv"), "utf8").catch(() => null);
    const ended = await finishAll(of(), [bad, ...good.map((one) => archive(one))]);
    expect(ended).toEqual([null, "done", "done", "done"]);
    expect(await of().drop.finish(bad.entry, bad.plan, never)).toBe(ending);
    expect(await readFile(join(of().root, "x.csv"), "utf8").catch(() => null)).toBe(before);
  });

  test.for(["of somebody else", "content"])(
    "never overwrites in the archive, where %j lies",
    async (there) => {
      await of().write("x.csv", "content", EARLIER);
      await of().write("archive/done/x.run1.csv", there);
      const wanted = archive(await entryAt(of().drop, "x.csv"));
      expect(await finishAll(of(), [wanted])).toEqual([null]);
      expect(await readFile(join(of().root, "x.csv"), "utf8")).toBe("content");
      const alone = of().drop.finish(wanted.entry, wanted.plan, never);
      if (there === "content") expect(await alone).toBe("done");
      else await expect(alone).rejects.toMatchObject({ code: "HG-DROP-009" });
      expect(await readFile(join(of().root, "archive/done/x.run1.csv"), "utf8")).toBe(there);
    },
  );

  test("moves nothing out of the drop by an archive folder that is a link", async () => {
    const [entry] = await layGood(of());
    if (entry === undefined) throw new Error("none");
    await mkdir(join(of().outside, "elsewhere"));
    await symlink(join(of().outside, "elsewhere"), join(of().root, "archive"));
    expect(
      await finishAll(of(), [archive(entry), { entry, plan: { action: "archive", to: "../x" } }]),
    ).toEqual([null, null]);
    expect(await readdir(join(of().outside, "elsewhere"))).toEqual([]);
    expect(await entryAt(of().drop, entry.path)).toEqual(entry);
  });
}

const known = new WeakMap<Field, FileEntry>();

/** As when the answer of an earlier party was lost. */
function lost(field: Field): [FileEntry, FinishPlan, AbortSignal] {
  const entry = known.get(field);
  if (entry === undefined) throw new Error("none");
  return [entry, archive(entry).plan, never];
}

function givingUpTogether(of: () => Field): void {
  test("does nothing for who has given up, and goes on with the next party", async () => {
    const good = await layGood(of());
    const nothing = good.map(() => null);
    expect(await fetchAll(of(), good, AbortSignal.abort())).toEqual(nothing);
    expect(
      await finishAll(
        of(),
        good.map((entry) => archive(entry)),
        AbortSignal.abort(),
      ),
    ).toEqual(nothing);
    const given = new AbortController();
    const fetched = fetchAll(of(), good, given.signal);
    given.abort();
    expect(await fetched).toEqual(nothing);
    expect((await fetchAll(of(), good))?.map((one) => one?.bytes)).toEqual(good.map(({ size }) => size));
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(GOOD);
  });

  test("moves no more files once it was given up, and says which it had moved", async () => {
    const good = await layGood(of());
    const given = new AbortController();
    const wanted = good.map((entry) => archive(entry));
    const ended = of().drop.finishTogether?.(wanted, given.signal);
    given.abort();
    const results = (await ended) ?? [];
    expect(results.some((result) => result === null)).toBe(true);
    const left = good.filter((_, at) => results[at] === null).map(({ path }) => path);
    expect((await listed(of().drop)).map(({ path }) => path)).toEqual(left);
  });

  test("takes several parties at the same time, and none when it is closed", async () => {
    const good = await layGood(of());
    const [fetched, ended] = await Promise.all([
      fetchAll(of(), good),
      finishAll(
        of(),
        good.map((entry) => archive(entry)),
      ),
    ]);
    expect(fetched?.map((one) => one?.bytes)).toEqual(good.map(({ size }) => size));
    expect(ended).toEqual(["done", "done", "done"]);
    await of().drop.close();
    await of().write("late.csv", "x");
    const late = { ...(good[0] as FileEntry), path: "late.csv" };
    expect(await fetchAll(of(), [late])).toEqual([null]);
    expect(await finishAll(of(), [archive(late)])).toEqual([null]);
  });
}
