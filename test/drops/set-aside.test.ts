/** The two halves of finishing a source file, at every kind of drop. */

import { appendFile, link, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { completeFinish, finishFile, inspectFile, putBack, setAside, setFileAside } from "#gateway/drops/drop.ts";
import { asideName, planFinish } from "#gateway/drops/finish.ts";
import { forgetScan, openForWriting } from "#gateway/drops/local/open-files.ts";
import type { FileEntry } from "#gateway/model.ts";
import { until } from "../e2e/wait.ts";
import { entryAt, type Field, listed, never, openFtp, openLocal, openSftp } from "./field.ts";

const kinds = [
  ["local", openLocal],
  ["sftp", openSftp],
  ["ftp by MLSD", openFtp("auto")],
  ["ftp by LIST", openFtp("list")],
] as const;

const archive = planFinish({ action: "archive", to: "archive" }, { path: "in/a.csv" }, "R1");
const remove = planFinish({ action: "delete" }, { path: "in/a.csv" }, "R1");
const plans = [
  ["archived", archive, () => "archive/in/a.R1.csv"],
  ["to be deleted", remove, (entry: FileEntry) => asideName(entry, remove)],
] as const;

describe.each(kinds)("a file at a drop of kind %s", (_kind, openIt) => {
  let field: Field;
  let entry: FileEntry;
  beforeEach(async () => {
    field = await openIt();
    await field.write("in/a.csv", "one\n", new Date("2026-03-01T00:00:00Z"));
    entry = await entryAt(field.drop, "in/a.csv");
  });
  afterEach(() => field.close());

  const contentOf = (path: string) => readFile(join(field.root, path), "utf8");

  test.each(plans)("%s is moved first, and found there when it grows", async (_words, plan, placeOf) => {
    const place = placeOf(entry);
    const aside = await setFileAside(field.drop, { entry, plan }, never);
    expect(aside).toMatchObject({ result: "done", place });
    expect(await listed(field.drop)).toEqual([]);
    expect((await inspectFile(field.drop, place, never))?.entry).toMatchObject({
      size: entry.size,
      mtime: entry.mtime,
    });
    await appendFile(join(field.root, place), "two\n");
    expect(await completeFinish(field.drop, { ...entry, path: place }, remove, never)).toBe("changed");
    expect((await inspectFile(field.drop, place, never))?.entry.size).toBe(8);
    expect(await putBack(field.drop, place, "in/a.csv", never)).toBe("done");
    expect(await contentOf("in/a.csv")).toBe("one\ntwo\n");
    expect(await putBack(field.drop, place, "in/a.csv", never)).toBe("gone");
  });

  test.each(plans)("%s is found at its place when it is moved again after a crash", async (_words, plan, placeOf) => {
    for (const _time of [1, 2])
      expect(await setFileAside(field.drop, { entry, plan }, never)).toMatchObject({
        result: "done",
        place: placeOf(entry),
      });
  });

  test.each(plans)(
    "%s goes back to its path when a crash came before anyone saw that another version had been moved",
    async (_words, plan, placeOf) => {
      await field.write("in/a.csv", "second content");
      await mkdir(dirname(join(field.root, placeOf(entry))), { recursive: true });
      await rename(join(field.root, "in/a.csv"), join(field.root, placeOf(entry)));
      expect(await setFileAside(field.drop, { entry, plan }, never)).toMatchObject({ result: "changed" });
      expect(await contentOf("in/a.csv")).toBe("second content");
      expect(await listed(field.drop)).toMatchObject([{ path: "in/a.csv" }]);
    },
  );

  test("of which another version was moved and a third one is at its path is watched where it is", async () => {
    await setFileAside(field.drop, { entry, plan: archive }, never);
    await writeFile(join(field.root, "archive/in/a.R1.csv"), "second content");
    await field.write("in/a.csv", "the third content");
    expect(await setFileAside(field.drop, { entry, plan: archive }, never)).toMatchObject({
      result: "done",
      place: "archive/in/a.R1.csv",
    });
    expect(await finishFile(field.drop, entry, archive, never)).toBe("changed");
    expect(await contentOf("in/a.csv")).toBe("the third content");
    expect(await contentOf("archive/in/a.R1.csv")).toBe("second content");
  });

  test("goes back to its path only when nothing else is there", async () => {
    const { place } = await setFileAside(field.drop, { entry, plan: archive }, never);
    await field.write("in/a.csv", "newer");
    expect(await putBack(field.drop, place, "in/a.csv", never)).toBe("occupied");
    expect(await contentOf("in/a.csv")).toBe("newer");
    expect(await contentOf(place)).toBe("one\n");
  });

  test("is deleted by the second half, which can be repeated", async () => {
    const { place } = await setFileAside(field.drop, { entry, plan: remove }, never);
    for (const _time of [1, 2])
      expect(await completeFinish(field.drop, { ...entry, path: place }, remove, never)).toBe("done");
    expect(await inspectFile(field.drop, place, never)).toBeNull();
  });

  test("that was changed before it was moved stays", async () => {
    await field.write("in/a.csv", "other content");
    expect(await setFileAside(field.drop, { entry, plan: archive }, never)).toMatchObject({
      result: "changed",
    });
    expect(await contentOf("in/a.csv")).toBe("other content");
  });
});

test("a file that a process has open for writing stays at its path until it was closed", async ({ skip }) => {
  skip(process.platform !== "linux", "no other system tells");
  const field = await openLocal();
  try {
    await writeFile(join(field.root, "a.csv"), "one\n");
    const entry = await entryAt(field.drop, "a.csv");
    const plan = planFinish({ action: "archive", to: "archive" }, entry, "R1");
    const writer = await open(join(field.root, "a.csv"), "a");
    // A scan of an earlier test does not know this one.
    forgetScan();
    await until("the system tells of it", async () => (await openForWriting([join(field.root, "a.csv")]))[0]);
    expect(await setFileAside(field.drop, { entry, plan }, never)).toMatchObject({
      ...{ result: "waits", place: "a.csv" },
      why: expect.stringMatching(`^process ${process.pid} \\(.+\\) has it open for writing$`),
    });
    await writeFile(join(field.root, "b.csv"), "two");
    const other = { entry: await entryAt(field.drop, "b.csv"), plan: { action: "delete" } as const };
    const aside = await setAside(field.drop, [{ entry, plan }, other], never);
    expect(aside).toMatchObject([{ value: { result: "waits" } }, { value: { result: "done" } }]);
    await expect(finishFile(field.drop, entry, plan, never)).rejects.toMatchObject({ code: "HG-DROP-009" });
    await writer.close();
    expect(await setFileAside(field.drop, { entry, plan }, never)).toMatchObject({
      ...{ result: "done", place: "archive/a.R1.csv", identity: expect.stringMatching(/^\d+:\d+$/) },
    });
  } finally {
    await field.close();
  }
});

test("a file that a server lets nobody rename waits at its path, and is deleted there", async () => {
  const field = await openFtp("auto")();
  try {
    Object.assign(field.faults ?? {}, { refusesRename: true });
    await field.write("a.csv", "one\n");
    const entry = await entryAt(field.drop, "a.csv");
    const plan = planFinish({ action: "delete" }, entry, "R1");
    const why = "the drop does not permit a rename";
    expect(await setFileAside(field.drop, { entry, plan }, never)).toMatchObject({
      result: "waits",
      place: "a.csv",
      why,
    });
    expect(await completeFinish(field.drop, entry, plan, never)).toBe("done");
    expect(await listed(field.drop)).toEqual([]);
  } finally {
    await field.close();
  }
});

describe("after a crash at a local drop", () => {
  let field: Field;
  let entry: FileEntry;
  beforeEach(async () => {
    field = await openLocal();
    await field.write("in/a.csv", "one\n", new Date("2026-03-01T00:00:00Z"));
    entry = await entryAt(field.drop, "in/a.csv");
  });
  afterEach(() => field.close());

  test("a copy that was complete before its source was removed stays in the archive", async () => {
    await mkdir(join(field.root, "archive/in"), { recursive: true });
    await field.write("archive/in/a.R1.csv", "one\n", new Date("2026-03-01T00:00:00Z"));
    const aside = await setFileAside(field.drop, { entry, plan: archive }, never);
    expect(aside).toMatchObject({ result: "done", place: "archive/in/a.R1.csv", plan: { action: "leave" } });
    expect(await listed(field.drop)).toEqual([]);
    await completeFinish(field.drop, { ...entry, path: aside.place }, aside.plan, never);
    expect(await readFile(join(field.root, "archive/in/a.R1.csv"), "utf8")).toBe("one\n");
  });

  test("a copy that an earlier attempt made without a guard stays in the archive", async () => {
    await mkdir(join(field.root, "archive/in"), { recursive: true });
    await field.write("archive/in/a.R1.csv", "one\n", new Date("2026-03-02T00:00:00Z"));
    await field.remove("in/a.csv");
    expect(await setFileAside(field.drop, { entry, plan: archive }, never)).toMatchObject({
      result: "done",
      place: "archive/in/a.R1.csv",
    });
  });

  test("a file that has its path again and not yet lost its place is taken from there", async () => {
    const { place } = await setFileAside(field.drop, { entry, plan: archive }, never);
    await link(join(field.root, place), join(field.root, "in/a.csv"));
    expect(await putBack(field.drop, place, "in/a.csv", never)).toBe("done");
    expect(await inspectFile(field.drop, place, never)).toBeNull();
    expect(await readFile(join(field.root, "in/a.csv"), "utf8")).toBe("one\n");
  });
});
