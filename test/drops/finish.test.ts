/**
 * What happens when uploads and crashes come between the steps of finishing. The folder is one in memory, so
 * that they can.
 */

import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { asideName, finishSource, planFinish, type SourceFiles } from "#gateway/drops/finish.ts";
import type { FileEntry, FinishPlan } from "#gateway/model.ts";
import { never, openLocal } from "./field.ts";

interface Stored {
  readonly content: string;
  readonly mtime: string;
}

class Folder implements SourceFiles {
  readonly files = new Map<string, Stored>();
  /** Called once before the next move, as an upload would come. */
  beforeMove: (() => void) | null = null;
  afterMove: (() => void) | null = null;

  put(path: string, content: string, mtime: string): FileEntry {
    this.files.set(path, { content, mtime });
    return { path, size: content.length, mtime };
  }

  async stat(path: string): Promise<FileEntry | null> {
    const file = this.files.get(path);
    return file === undefined ? null : { path, size: file.content.length, mtime: file.mtime };
  }

  async makeFolder(): Promise<void> {}

  async move(from: string, to: string): Promise<null> {
    take(this, "beforeMove")?.();
    const file = this.files.get(from);
    if (file === undefined || this.files.has(to)) throw new Error("cannot move");
    this.files.delete(from);
    this.files.set(to, file);
    take(this, "afterMove")?.();
    return null;
  }

  async remove(path: string): Promise<void> {
    this.files.delete(path);
  }

  async sameContent(one: string, other: string): Promise<boolean> {
    return this.files.get(one)?.content === this.files.get(other)?.content;
  }

  contents(): Record<string, string> {
    return Object.fromEntries([...this.files].map(([path, file]) => [path, file.content]));
  }
}

function take(folder: Folder, hook: "beforeMove" | "afterMove"): (() => void) | null {
  const called = folder[hook];
  folder[hook] = null;
  return called;
}

const archive = planFinish({ action: "archive", to: "archive" }, { path: "a.csv" }, "R1");
const finish = (folder: Folder, entry: FileEntry, plan: FinishPlan) =>
  finishSource({ name: "d", log: silentLog }, folder, entry, plan);

describe.for([archive, { action: "delete" }] as const)("finishing by %o", (plan) => {
  test("returns an upload to the drop that arrived between check and move", async () => {
    const folder = new Folder();
    const entry = folder.put("a.csv", "delivered", "1");
    folder.beforeMove = () => folder.put("a.csv", "slipped in", "2");
    expect(await finish(folder, entry, plan)).toBe("changed");
    expect(folder.contents()).toEqual({ "a.csv": "slipped in" });
  });

  test("never loses the newest of two uploads that arrived meanwhile", async () => {
    const folder = new Folder();
    const entry = folder.put("a.csv", "delivered", "1");
    folder.beforeMove = () => folder.put("a.csv", "older", "2");
    folder.afterMove = () => folder.put("a.csv", "newest", "3");
    expect(await finish(folder, entry, plan)).toBe("changed");
    expect(folder.contents()["a.csv"]).toBe("newest");
    expect(Object.values(folder.contents())).toContain("older");
  });

  test("leaves an upload alone that arrived just after the move", async () => {
    const folder = new Folder();
    const entry = folder.put("a.csv", "delivered", "1");
    folder.afterMove = () => folder.put("a.csv", "next", "2");
    expect(await finish(folder, entry, plan)).toBe("done");
    expect(folder.contents()["a.csv"]).toBe("next");
    expect(await finish(folder, entry, plan)).toBe(plan.action === "archive" ? "done" : "changed");
    expect(folder.contents()["a.csv"]).toBe("next");
  });
});

test("removes the source when a crash left it beside its complete copy", async () => {
  const folder = new Folder();
  const entry = folder.put("a.csv", "delivered", "1");
  folder.put("archive/a.R1.csv", "delivered", "9");
  expect(await finish(folder, entry, archive)).toBe("done");
  expect(folder.contents()).toEqual({ "archive/a.R1.csv": "delivered" });
});

test("resumes a deletion that a crash interrupted after the file was set aside", async () => {
  const folder = new Folder();
  const entry = folder.put("in/a.csv", "delivered", "1");
  await folder.move("in/a.csv", asideName(entry, { action: "delete" }));
  folder.put("in/a.csv", "next", "2");
  expect(await finish(folder, entry, { action: "delete" })).toBe("done");
  expect(folder.contents()).toEqual({ "in/a.csv": "next" });
});

test("a local drop refuses a path through a symbolic link that leads out of it", async () => {
  const field = await openLocal();
  try {
    await writeFile(join(field.outside, "secret.csv"), "secret");
    await symlink(field.outside, join(field.root, "link"));
    const entry = { path: "link/secret.csv", size: 6, mtime: "1" };
    const refusal = { code: "HG-DROP-005" };
    await expect(field.drop.stat(entry.path, never)).rejects.toMatchObject(refusal);
    await expect(fetchFile(field.drop, entry, join(field.outside, "copy"), never)).rejects.toMatchObject(refusal);
    await expect(finishFile(field.drop, entry, { action: "delete" }, never)).rejects.toMatchObject(refusal);
  } finally {
    await field.close();
  }
});
