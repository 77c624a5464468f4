/** The thread of a local drop, at the points where an upload may slip in: each hook is asked there. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asideName } from "../../src/drops/archive-name.ts";
import { createDrop } from "../../src/drops/create.ts";
import { NO_FILE, performLocal } from "../../src/drops/local/disk-work.ts";
import { LocalEvents } from "../../src/drops/local/events.ts";
import { dropOptions } from "../../src/drops/options.ts";
import type { FileEntry } from "../../src/model.ts";
import { silentLog } from "../../src/support/log.ts";
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

test("a listing of many files shows each of them, also one whose name is no text", async () => {
  const expected = [entry, ...Array.from({ length: 700 }, (_, nth) => write(`m_${nth}.csv`, "x".repeat(nth % 7)))];
  writeFileSync(Buffer.concat([Buffer.from(`${root}/z`), Buffer.of(0xe4), Buffer.from(".csv")]), "odd");
  const drop = await createDrop(dropOptions.parse({ kind: "local", name: "many", path: root }), { log: silentLog });
  const listed = await Array.fromAsync(drop.list(never));
  await drop.close();
  expect(new Set(listed.filter(({ path }) => path !== "z\\xE4.csv"))).toEqual(new Set(expected));
  expect(listed).toHaveLength(expected.length + 1);
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
