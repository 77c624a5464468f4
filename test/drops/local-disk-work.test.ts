/** The thread of a local drop, at the points where an upload may slip in: each hook is asked there. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TransientError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { DiskThread } from "#core/threads/disk-thread.ts";
import { createDrop } from "#gateway/drops/create.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { asideName } from "#gateway/drops/finish.ts";
import { FileBudget } from "#gateway/drops/known-files.ts";
import { type LocalOrder, NO_FILE, performLocal } from "#gateway/drops/local/disk-work.ts";
import { LocalEvents } from "#gateway/drops/local/events.ts";
import type { SomeNames } from "#gateway/drops/local/names-work.ts";
import { RememberedParts } from "#gateway/drops/local/remembered.ts";
import { type LocalTree, listTree } from "#gateway/drops/local/walk.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { EVERYTHING } from "#gateway/drops/paths.ts";
import type { FileEntry } from "#gateway/model.ts";
import { never } from "./field.ts";

let ground: string;
let root: string;
let entry: FileEntry;
beforeEach(() => {
  ground = realpathSync(mkdtempSync(join(tmpdir(), "headgate-")));
  root = join(ground, "drop");
  mkdirSync(root);
  entry = write("a.csv", "delivered");
});
afterEach(() => rmSync(ground, { recursive: true }));

function write(path: string, content: string): FileEntry {
  writeFileSync(join(root, path), content);
  const { size, mtimeNs } = lstatSync(join(root, path), { bigint: true });
  return { path, size: Number(size), mtime: String(mtimeNs) };
}

const facts = (hooks: { isWanted?(): boolean; isAwaited?(): boolean } = {}) => ({
  data: { root },
  isWanted: () => true,
  isAwaited: () => true,
  ...hooks,
});

describe("a thread that reads the status of files", () => {
  test("tells files from folders, links and what vanished, and leaves out what it cannot read", () => {
    mkdirSync(join(root, "folder"));
    symlinkSync("a.csv", join(root, "link"));
    const paths = ["a.csv", "folder", "link", "vanished", `a.csv/${"x".repeat(300)}`].join("\0");
    expect(performLocal({ kind: "status", root, paths }, facts())).toEqual({
      sizes: Float64Array.of(entry.size, NO_FILE, NO_FILE, NO_FILE, Number.NaN),
      times: BigInt64Array.of(BigInt(entry.mtime), 0n, 0n, 0n, 0n),
    });
  });

  test("begins no further file when its caller gave up", () => {
    const answer = performLocal({ kind: "status", root, paths: "a.csv" }, facts({ isWanted: () => false }));
    expect(answer).toEqual({ sizes: Float64Array.of(Number.NaN), times: BigInt64Array.of(0n) });
  });
});

describe("a thread that reads names", () => {
  const order = { kind: "names", listing: 1, names: "utf-8" } as const;
  const ask = (step: "begin" | "continue" | "end", more: Partial<LocalOrder> = {}) =>
    performLocal({ ...order, folder: root, step, ...more } as LocalOrder, facts()) as SomeNames;

  test("tells files from folders and links, as text of the encoding of the drop", () => {
    mkdirSync(join(root, "folder"));
    symlinkSync("a.csv", join(root, "link"));
    writeFileSync(Buffer.concat([Buffer.from(`${root}/z`), Buffer.of(0xe4), Buffer.from(".csv")]), "");
    const found = { folders: "folder", linksCount: 1, count: 4, ended: true };
    const utf8 = ask("begin");
    expect({ ...utf8, files: utf8.files.split("\0").sort() }).toEqual({ ...found, files: ["a.csv", "z\\xE4.csv"] });
    const latin1 = ask("begin", { names: "latin-1", folder: Buffer.from(root) });
    expect({ ...latin1, files: latin1.files.split("\0").sort() }).toEqual({ ...found, files: ["a.csv", "zä.csv"] });
  });

  test("reads a large folder in parts, and no further when it was ended or the caller gave up", () => {
    const names = ["a.csv", ...Array.from({ length: 2_500 }, (_, nth) => `m_${nth}.csv`)];
    for (const name of names) writeFileSync(join(root, name), "");
    const first = ask("begin");
    const second = ask("continue");
    expect([first.ended, second.ended]).toEqual([false, true]);
    expect(`${first.files}\0${second.files}`.split("\0").sort()).toEqual(names.sort());
    expect(() => ask("continue"), "it was read to its end").toThrow();
    ask("begin");
    expect(ask("end").ended).toBe(true);
    expect(() => ask("continue")).toThrow();
    performLocal({ ...order, folder: root, step: "begin" }, facts({ isWanted: () => false }));
    expect(() => ask("continue"), "the caller gave up").toThrow();
  });

  test("is replaced when it reads nothing", async () => {
    const names = ["a.csv", ...Array.from({ length: 700 }, (_, nth) => `m_${nth}.csv`)];
    for (const name of names) writeFileSync(join(root, name), "");
    const tree: LocalTree = {
      ...{ root, names: "utf-8", filter: EVERYTHING, guard: (work) => work, onLink: () => undefined },
      statuses: async () => null,
      async *someNames() {},
    };
    const listed = (await Array.fromAsync(listTree(tree, ""))).flat().map(({ path }) => path);
    expect(listed.sort()).toEqual(names.sort());
  });

  describe("of a drop", () => {
    const names = ["a.csv", ...Array.from({ length: 3_000 }, (_, nth) => `m_${nth}.csv`)];
    let drop: Drop;
    let asked: string[];
    beforeEach(async () => {
      for (const name of names) writeFileSync(join(root, name), "");
      drop = await createDrop(dropOptions.parse({ kind: "local", name: "many", path: root }), { log: silentLog });
      asked = [];
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      await drop.close();
    });

    /** The next names that the thread is asked for are answered after `onContinue`, and null when it returns so. */
    function answerContinued(onContinue: () => null | undefined): void {
      const { ask: askThread } = DiskThread.prototype;
      vi.spyOn(DiskThread.prototype, "ask").mockImplementation(async function (this: never, order, ...rest) {
        const { kind, step } = order as LocalOrder & { step?: string };
        if (kind === "names") asked.push(step ?? "");
        if (step === "continue" && onContinue() === null) return null;
        return await askThread.call(this, order, ...rest);
      });
    }

    async function listed(signal = never): Promise<{ paths: string[]; folders: string[]; error: unknown }> {
      const paths: string[] = [];
      const folders: string[] = [];
      try {
        for await (const entries of drop.list(signal, (folder) => folders.push(folder)))
          paths.push(...entries.map(({ path }) => path));
        return { paths: paths.sort(), folders, error: null };
      } catch (error) {
        return { paths, folders, error };
      }
    }

    test("cuts a listing off when it fails later, and reads no names until another is complete", async () => {
      answerContinued(() => null);
      const cut = await listed();
      expect(cut).toMatchObject({ folders: [], error: expect.any(TransientError) });
      expect(String(cut.error)).toContain("broke off");
      expect(cut.paths.length).toBeGreaterThan(1_000);
      expect(new Set(cut.paths).size, "none twice").toBe(cut.paths.length);
      expect(asked).toEqual(["begin", "continue"]);
      const stop = new AbortController();
      const interrupted = drop.list(stop.signal)[Symbol.asyncIterator]();
      await interrupted.next();
      stop.abort();
      await interrupted.return?.().catch(() => undefined);
      const whole = { paths: [...names].sort(), folders: [""], error: null };
      expect(await listed()).toEqual(whole);
      expect(asked).toEqual(["begin", "continue"]);
      vi.restoreAllMocks();
      answerContinued(() => undefined);
      expect(await listed()).toEqual(whole);
      expect(asked.slice(2)).toEqual(["begin", "continue"]);
    });

    test("is not blamed for a listing that its caller aborted", async () => {
      const stop = new AbortController();
      answerContinued(() => {
        stop.abort();
        return undefined;
      });
      const { folders, error } = await listed(stop.signal);
      expect({ folders, error }).toMatchObject({ folders: [], error: { code: "HG-DROP-012" } });
      expect((await listed()).error).toBeNull();
      expect(asked.filter((step) => step === "begin")).toHaveLength(2);
    });
  });
});

test("a listing of many files shows each of them, also one whose name is no text", async () => {
  const expected = [entry, ...Array.from({ length: 700 }, (_, nth) => write(`m_${nth}.csv`, "x".repeat(nth % 7)))];
  writeFileSync(Buffer.concat([Buffer.from(`${root}/z`), Buffer.of(0xe4), Buffer.from(".csv")]), "odd");
  const drop = await createDrop(dropOptions.parse({ kind: "local", name: "many", path: root }), { log: silentLog });
  const listed = (await Array.fromAsync(drop.list(never))).flat();
  await drop.close();
  expect(new Set(listed.filter(({ path }) => path !== "z\\xE4.csv"))).toEqual(new Set(expected));
  expect(listed).toHaveLength(expected.length + 1);
});

test("a group of a large folder stays the same object until a name or a status in it changes", async () => {
  const paths = Array.from({ length: 100 }, (_, nth) => `in/m_${nth}.csv`);
  mkdirSync(join(root, "in"));
  for (const path of [...paths, "in/m_0.txt"]) write(path, "x");
  const options = dropOptions.parse({ kind: "local", name: "many", path: root, include: ["**/*.csv"] });
  const drop = await createDrop(options, { log: silentLog });
  const listed = async () => {
    const group = (await Array.fromAsync(drop.list(never))).find((entries) => entries.length > 50) ?? [];
    return {
      group,
      paths: group.map(({ path }) => path).sort(),
      sizes: new Map(group.map((one) => [one.path, one.size])),
    };
  };
  try {
    const first = await listed();
    expect(first.paths).toEqual(paths.toSorted());
    expect((await listed()).group).toBe(first.group);
    write("in/m_7.csv", "longer");
    const changed = await listed();
    expect(changed.group).not.toBe(first.group);
    expect(changed.paths).toEqual(first.paths);
    expect([changed.sizes.get("in/m_7.csv"), changed.sizes.get("in/m_8.csv")]).toEqual([6, 1]);
    utimesSync(join(root, "in/m_8.csv"), 1, 1);
    const touched = await listed();
    expect(touched.group.find(({ path }) => path === "in/m_8.csv")?.mtime).toBe("1000000000");
    expect((await listed()).group).toBe(touched.group);
    renameSync(join(root, "in/m_9.csv"), join(root, "in/other.csv"));
    const renamed = await listed();
    expect(renamed.paths).toEqual(paths.with(9, "in/other.csv").toSorted());
    expect((await listed()).group).toBe(renamed.group);
    rmSync(join(root, "in"), { recursive: true });
    expect((await listed()).group).toEqual([]);
  } finally {
    await drop.close();
  }
});

describe("parts that are remembered", () => {
  const part = (names: string, count: number) => ({
    ...{ names, asked: names, others: [], statuses: null, entries: [] },
    paths: Array.from({ length: count }, (_, at) => `${at}`),
  });

  test("are no more than the limit, and what is no longer listed makes room", () => {
    const budget = new FileBudget(5);
    const remembered = new RememberedParts(budget);
    const listing = (folders: Readonly<Record<string, readonly ReturnType<typeof part>[]>>) => {
      remembered.begin();
      for (const [folder, parts] of Object.entries(folders)) {
        for (const [at, one] of parts.entries())
          if (remembered.find(folder, at, one.names) === undefined) remembered.keep(folder, at, one);
        remembered.folderRead(folder, parts.length);
      }
      remembered.complete();
    };
    listing({ a: [part("a", 3), part("b", 2)], c: [part("c", 1)] });
    const known = () => [remembered.find("a", 0, "a"), remembered.find("a", 1, "b"), remembered.find("c", 0, "c")];
    expect(known().map((one) => one !== undefined)).toEqual([true, true, false]);
    expect(remembered.find("a", 1, "other")).toBeUndefined();
    listing({ a: [part("a", 3)], c: [part("c", 1)] });
    expect(known().map((one) => one !== undefined)).toEqual([true, false, true]);
    listing({ c: [part("c", 1)] });
    expect(known().map((one) => one !== undefined)).toEqual([false, false, true]);
    remembered.forgetAll();
    expect(budget.take(5)).toBe(true);
  });
});

describe("a thread that fetches", () => {
  const copy = () => join(ground, "copy");
  const fetchIt = (hooks: { isWanted(): boolean }) =>
    performLocal({ kind: "fetch", entries: [entry], destination: copy() }, facts(hooks));

  test("leaves out a file that was replaced while it was read", () => {
    expect(fetchIt({ isWanted: () => true })).toEqual([{ offset: 0, bytes: 9, sha256: expect.any(String) }]);
    rmSync(copy());
    let asked = 0;
    const isWanted = () => {
      asked += 1;
      if (asked === 2) write("a.csv", "the next upload");
      return true;
    };
    expect(fetchIt({ isWanted })).toEqual([null]);
    expect(asked).toBe(3);
  });

  test("leaves no copy when it was cancelled while it wrote", () => {
    const wasThere: boolean[] = [];
    const isWanted = () => {
      wasThere.push(existsSync(copy()));
      return wasThere.at(-1) === false;
    };
    expect(fetchIt({ isWanted })).toEqual([null]);
    expect(wasThere).toContain(true);
    expect(existsSync(copy())).toBe(false);
  });

  test("leaves a copy alone that another thread may write by now, when it was cancelled while it read", () => {
    let asked = 0;
    const isWanted = () => {
      asked += 1;
      return asked < 2;
    };
    expect(fetchIt({ isWanted })).toEqual([null]);
    expect(existsSync(copy())).toBe(false);
  });
});

describe.each(["archive", "delete"])("a thread that finishes by %s", (action) => {
  const finishIt = (isAwaited: () => boolean) => {
    const to = action === "delete" ? asideName(entry, { action: "delete" }) : "archive/a.R1.csv";
    return performLocal({ kind: "finish", wanted: [{ entry, to, remove: action === "delete" }] }, facts({ isAwaited }));
  };

  test("returns an upload to the drop that arrived between check and move", () => {
    const slipIn = () => {
      write("a.csv", "slipped in");
      return true;
    };
    expect(finishIt(slipIn)).toEqual(["changed"]);
    expect(readFileSync(join(root, "a.csv"), "utf8")).toBe("slipped in");
    expect(readdirSync(root, { recursive: true }).filter((name) => String(name).includes("R1"))).toEqual([]);
  });

  test("changes nothing after its caller has left", () => {
    expect(finishIt(() => false)).toEqual([null]);
    expect(readFileSync(join(root, "a.csv"), "utf8")).toBe("delivered");
  });
});

test("each file of a list is refused by a drop whose folder is missing", async () => {
  const options = dropOptions.parse({ kind: "local", name: "in", path: join(ground, "none") });
  const drop = await createDrop(options, { log: silentLog });
  const refused = { status: "rejected", reason: { code: expect.stringMatching(/^HG-DROP-00[26]$/) } };
  const planned = { entry, plan: { action: "delete" } } as const;
  expect(await drop.fetch([entry, entry], join(ground, "copy"), never)).toMatchObject([refused, refused]);
  expect(await drop.finish([planned, planned], never)).toMatchObject([refused, refused]);
  await drop.close();
});

test("the events of files that a list removes are expected, and those of other files are not", async () => {
  const options = dropOptions.parse({ kind: "local", name: "in", path: root });
  const drop = await createDrop(options, { log: silentLog });
  const expected = vi.spyOn(LocalEvents.prototype, "expect");
  const stop = drop.watch?.(() => undefined);
  const stays = write("stays.csv", "x");
  const plans = [
    { entry, plan: { action: "delete" } as const },
    { entry: stays, plan: { action: "leave" } as const },
  ];
  expect(await drop.finish(plans, never)).toMatchObject([{ value: "done" }, { value: "done" }]);
  expect(expected.mock.calls).toEqual([["a.csv"]]);
  await stop?.();
  await drop.close();
});
