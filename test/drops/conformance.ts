/** What drops must do in whose folders others put files, beside what every kind must do. One suite for all of them. */

import { watch } from "node:fs";
import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TransientError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import type { FinishPlan } from "#gateway/model.ts";
import { conformsAsEvery } from "./common-conformance.ts";
import { entryAt, type Field, listed, never, type OpenField } from "./field.ts";
import { takingLists } from "./list-conformance.ts";

const EARLIER = new Date("2026-03-01T00:15:00Z");
const LATER = new Date("2026-03-01T08:45:00Z");

/** `hasLinks`: symbolic links of the root are those of the drop. */
export function conforms(kind: string, open: OpenField, { hasLinks = false } = {}): void {
  describe(kind, () => {
    let field: Field;
    beforeEach(async () => {
      field = await open();
    });
    afterEach(() => field.close());

    conformsAsEvery(() => field);
    listing(() => field, open);
    fetching(() => field, open);
    finishing(() => field);
    clearing(() => field);
    probing(() => field);
    refusing(() => field, open);
    takingLists(() => field, open, hasLinks);
  });
}

function listing(of: () => Field, open: OpenField): void {
  test("reports another time after the file was rewritten", async () => {
    await of().write("a.csv", "one", EARLIER);
    const before = await entryAt(of().drop, "a.csv");
    await of().write("a.csv", "two", LATER);
    expect((await entryAt(of().drop, "a.csv")).mtime).not.toBe(before.mtime);
  });

  test("lists nothing of its archive folders", async () => {
    await of().write("archive/old.csv", "old");
    await of().write("in/archive/new.csv", "a folder of the same name elsewhere is a folder like others");
    expect((await listed(of().drop)).map((entry) => entry.path)).toEqual(["in/archive/new.csv"]);
  });

  test("lists by its patterns, and only the top folder when it is not recursive", async () => {
    for (const name of ["a.csv", "a.txt", "in/b.csv", "old/c.csv"]) await of().write(name, "x");
    const picky = await open({ include: ["**/*.csv"], exclude: ["old/**"] });
    const flat = await open({ recursive: false });
    try {
      for (const name of ["a.csv", "a.txt", "in/b.csv", "old/c.csv"]) {
        await picky.write(name, "x");
        await flat.write(name, "x");
      }
      expect((await listed(picky.drop)).map((entry) => entry.path)).toEqual(["a.csv", "in/b.csv"]);
      expect((await listed(flat.drop)).map((entry) => entry.path)).toEqual(["a.csv", "a.txt"]);
    } finally {
      await picky.close();
      await flat.close();
    }
  });

  test("reports each folder after all of its files were returned, with its subfolders", async () => {
    for (const path of ["a.csv", "in/b.csv", "in/deep/c.csv", "archive/old.csv"]) await of().write(path, "x");
    const told: (string | readonly string[])[] = [];
    const onFolder = (folder: string, below: readonly string[]) => told.push([folder, ...below]);
    for await (const entries of of().drop.list(never, onFolder)) told.push(...entries.map(({ path }) => path));
    expect(told.filter((one) => typeof one !== "string").toSorted()).toEqual([
      ["", "in"],
      ["in", "in/deep"],
      ["in/deep"],
    ]);
    const folderAt = (folder: string) => told.findIndex((one) => Array.isArray(one) && one[0] === folder);
    for (const [path, folder] of [
      ["a.csv", ""],
      ["in/b.csv", "in"],
      ["in/deep/c.csv", "in/deep"],
    ] as const)
      expect(told.indexOf(path)).toBeLessThan(folderAt(folder));
  });
}

function fetching(of: () => Field, open: OpenField): void {
  test.for([
    ["grew", "content and more", EARLIER],
    ["shrank", "con", EARLIER],
    ["was written again", "CONTENT", LATER],
  ] as const)("refuses a file temporarily that %s since it was listed", async ([, content, time]) => {
    await of().write("a.csv", "content", EARLIER);
    const entry = await entryAt(of().drop, "a.csv");
    await of().write("a.csv", content, time);
    const fetched = fetchFile(of().drop, entry, join(of().outside, "copy"), never);
    await expect(fetched).rejects.toThrow(TransientError);
    await expect(fetched).rejects.toMatchObject({ code: "HG-DROP-008" });
  });

  test("rejects a file above the size limit before it requests a byte", async () => {
    const small = await open({ maxFileSize: "10B" });
    try {
      await small.write("a.csv", "more than ten bytes");
      const entry = await entryAt(small.drop, "a.csv");
      await expect(fetchFile(small.drop, entry, join(small.outside, "copy"), never)).rejects.toMatchObject({
        code: "HG-DROP-010",
      });
    } finally {
      await small.close();
    }
  });
}

function finishing(of: () => Field): void {
  const planned = (tag = "run1"): FinishPlan =>
    planFinish({ action: "archive", to: "archive/done" }, { path: "in/a b.csv" }, tag);
  const archived = async () => (await readdir(join(of().root, "archive/done/in")).catch(() => [])).sort();

  test("leaves nothing behind of a file that it deleted", async () => {
    await of().write("in/a b.csv", "content");
    const entry = await entryAt(of().drop, "in/a b.csv");
    expect(await finishFile(of().drop, entry, { action: "delete" }, never)).toBe("done");
    expect(await readdir(join(of().root, "in"))).toEqual([]);
  });

  test("archives one version after another, each beside the other", async () => {
    for (const run of ["run1", "run2"]) {
      await of().write("in/a b.csv", `content of ${run}`);
      expect(await finishFile(of().drop, await entryAt(of().drop, "in/a b.csv"), planned(run), never)).toBe("done");
    }
    expect(await archived()).toEqual(["a b.run1.csv", "a b.run2.csv"]);
  });

  test("returns done for an archived version while the next version is at its path, and keeps that one", async () => {
    await of().write("in/a b.csv", "content", EARLIER);
    const entry = await entryAt(of().drop, "in/a b.csv");
    await finishFile(of().drop, entry, planned(), never);
    await of().write("in/a b.csv", "the next", LATER);
    expect(await finishFile(of().drop, entry, planned(), never)).toBe("done");
    expect(await readFile(join(of().root, "in/a b.csv"), "utf8")).toBe("the next");
  });

  test.for(["archive", "delete"] as const)("leaves other content at its path (%s)", async (action) => {
    await of().write("in/a b.csv", "content", EARLIER);
    const entry = await entryAt(of().drop, "in/a b.csv");
    await of().write("in/a b.csv", "other content", LATER);
    const plan = action === "archive" ? planned() : ({ action } as const);
    expect(await finishFile(of().drop, entry, plan, never)).toBe("changed");
    expect(await readFile(join(of().root, "in/a b.csv"), "utf8")).toBe("other content");
  });
}

function clearing(of: () => Field): void {
  test("returns the time of a file as an instant, or that it is unknown", async () => {
    await of().write("a.csv", "x", EARLIER);
    const modifiedMs = of().drop.modifiedMs(await entryAt(of().drop, "a.csv"));
    expect([EARLIER.getTime(), null]).toContain(modifiedMs);
  });
}

function probing(of: () => Field): void {
  const everything = async () => (await readdir(of().root, { recursive: true })).toSorted();
  /** Calls back with the name of each file of a check as it appears. */
  const onTrial = (seen: (name: string) => void) =>
    watch(of().root, (_event, name) => name?.startsWith(".headgate-check-") && seen(name));

  test("reports its findings and permissions, and leaves nothing behind", async () => {
    await of().write("a.csv", "x");
    const handed: string[] = [];
    const findings = await of().drop.probe(never, ({ path }) => handed.push(path));
    expect(findings.filter(({ level }) => level === "failed")).toEqual([]);
    const saying = Object.fromEntries(findings.map(({ about, what }) => [about, what]));
    expect(saying).toMatchObject({
      listing: expect.stringContaining("1 files listed in "),
      clock: expect.stringMatching(/^agrees with ours, within \d s$/),
      rights: "files can be renamed and deleted",
      archive: "archive does not exist yet; it can be created",
    });
    expect(handed).toEqual(["a.csv"]);
    expect(await everything()).toEqual(["a.csv"]);
  });

  test("tries an existing archive, and deletes what a killed check left", async () => {
    await of().write("archive/old.csv", "x");
    const left = new Set<string>();
    const watching = onTrial((name) => left.add(name));
    await of().drop.probe(never);
    // The file and its second name.
    await expect.poll(() => left.size).toBe(2);
    watching.close();
    for (const name of left) await of().write(name, "of a killed check");
    for (const name of left) if (name.includes("renamed")) await of().write(`archive/${name}`, "of a killed check");
    const findings = await of().drop.probe(never);
    expect(findings.filter(({ level }) => level === "failed")).toEqual([]);
    expect(findings).toContainEqual({ level: "ok", about: "archive", what: "files can be moved to archive" });
    expect(await everything()).toEqual(["archive", "archive/old.csv"]);
  });

  test("hides the files of a check from concurrent listings", async () => {
    await of().write("a.csv", "x");
    const other = await createDrop(of().options, { log: silentLog });
    const seen = new Set<string>();
    try {
      let ended = false;
      const probed = of()
        .drop.probe(never)
        .finally(() => {
          ended = true;
        });
      while (!ended) for (const { path } of await listed(other)) seen.add(path);
      expect((await probed).map(({ level }) => level)).not.toContain("failed");
    } finally {
      await other.close();
    }
    expect([...seen]).toEqual(["a.csv"]);
  });

  test("leaves nothing behind when it is cancelled in the middle", async () => {
    const given = new AbortController();
    const watching = onTrial(() => given.abort());
    await of()
      .drop.probe(given.signal)
      .catch(() => undefined);
    watching.close();
    expect(await everything()).toEqual([]);
  });
}

function refusing(of: () => Field, open: OpenField): void {
  test("does not follow symbolic links", async () => {
    await writeFile(join(of().outside, "outside.csv"), "secret");
    await symlink(join(of().outside, "outside.csv"), join(of().root, "link.csv"));
    await symlink(of().outside, join(of().root, "folder"));
    expect(await listed(of().drop)).toEqual([]);
    expect(await of().drop.stat("link.csv", never)).toBeNull();
    const probe = await of().drop.probe(never);
    expect(probe.some((finding) => finding.what.includes("symbolic links are not followed"))).toBe(true);
  });

  test("names a folder that does not exist", async () => {
    const lost = await open({ path: join(of().root, "none") });
    try {
      await expect(listed(lost.drop)).rejects.toMatchObject({ code: "HG-DROP-002" });
      expect((await lost.drop.probe(never)).map((finding) => finding.level)).toContain("failed");
    } finally {
      await lost.close();
    }
  });
}

/** For a drop to which files are sent, and which names the paths itself. */
export function conformsAsReceiver(kind: string, open: OpenField): void {
  describe(kind, () => {
    let field: Field;
    beforeEach(async () => {
      field = await open();
    });
    afterEach(() => field.close());

    conformsAsEvery(() => field);
  });
}
