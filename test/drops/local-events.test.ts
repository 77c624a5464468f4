import { mkdirSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLog, type Logger, silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { type ListedTree, LocalEvents, WATCHED_MAX } from "#gateway/drops/local/events.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { never } from "./field.ts";

let folder: string;
const open: LocalEvents[] = [];
const closings: (() => Promise<void>)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  await mkdir(join(folder, "drop"));
});
afterEach(async () => {
  for (const events of open.splice(0)) await events.stop();
  for (const close of closings.splice(0)) await close();
  await rm(folder, { recursive: true });
});

function eventsOf(onChange: () => void, log: Logger = silentLog, settings: object = {}, namesMax?: number) {
  const options = dropOptions.parse({ kind: "local", name: "in", path: join(folder, "drop"), ...settings });
  if (options.kind !== "local") throw new Error("the drop is not local");
  const events = new LocalEvents(options, log, onChange, namesMax);
  open.push(events);
  return events;
}

/** As a listing would report it. */
function treeAt(root: string, identity: string): ListedTree {
  return { root, identity, entries: 0, folders: 1 };
}

async function watch(
  settings: object = {},
  tree = treeAt(join(folder, "drop"), "1"),
): Promise<{ readonly events: LocalEvents; count: number }> {
  const countOne = () => {
    watched.count += 1;
  };
  const watched = { events: eventsOf(countOne, silentLog, settings), count: 0 };
  watched.events.listed(tree);
  expect(await watched.events.tested()).toBe(true);
  return watched;
}

it("a file that the gateway removes itself causes no event, and changes by others do", async () => {
  const ours = await watch();
  const others = await watch();
  await writeFile(join(folder, "drop", "a.csv"), "1");
  await expect.poll(() => others.count).toBeGreaterThan(0);
  // The events of this write have been told to both by the time that those of the next file are.
  await writeFile(join(folder, "drop", "b.csv"), "1");
  await expect.poll(() => ours.count).toBeGreaterThan(1);
  ours.events.expect("a.csv");
  const before = { ours: ours.count, others: others.count };
  await rename(join(folder, "drop", "a.csv"), join(folder, "a.csv"));
  await expect.poll(() => others.count).toBeGreaterThan(before.others);
  await rename(join(folder, "drop", "b.csv"), join(folder, "b.csv"));
  await expect.poll(() => ours.count).toBeGreaterThan(before.ours);
  // One of the two files that went was expected.
  await expect.poll(() => others.count - before.others).toBeGreaterThan(ours.count - before.ours);
});

/** A drop that is watched, in which `tellsOf` resolves when something was told of what was done. */
async function watchDrop(): Promise<{
  readonly root: string;
  list(): Promise<string[]>;
  arrive(): boolean | null | undefined;
  tellsOf(work: () => Promise<unknown>): Promise<void>;
}> {
  const root = join(folder, "drop");
  const drop = await createDrop(dropOptions.parse({ kind: "local", name: "in", path: root }), { log: silentLog });
  let changes = 0;
  const stop = drop.watch?.(() => {
    changes += 1;
  });
  closings.push(async () => {
    await stop?.();
    await drop.close();
  });
  return {
    root,
    arrive: () => drop.eventsArrive?.(),
    list: async () => (await Array.fromAsync(drop.list(never))).flat().map(({ path }) => path),
    async tellsOf(work) {
      // What was told of the step before has come by now.
      await expect
        .poll(async () => {
          const before = changes;
          await new Promise((resolve) => setImmediate(resolve));
          return changes - before;
        })
        .toBe(0);
      const before = changes;
      await work();
      await expect.poll(() => changes, { timeout: 60_000 }).toBeGreaterThan(before);
    },
  };
}

it("a folder that cannot be watched is reported once, and events count as lost from then on", async () => {
  const logged: string[] = [];
  const log = createLog("warn", { write: (line) => void logged.push(JSON.parse(line).msg) });
  const events = eventsOf(() => undefined, log);
  events.listed(treeAt(join(folder, "drop"), "1"));
  expect(await events.tested()).toBe(true);
  // The system refuses names of this length, as it refuses a folder when it has no watches left.
  for (const letter of ["a", "b"]) events.listed(treeAt(join(folder, letter.repeat(300)), letter));
  await expect.poll(() => events.arrive).toBe(false);
  const failed = "file-system events failed; polling continues";
  expect(logged.filter((message) => message === failed)).toEqual([failed]);
});

it("a drop of too many folders is only polled until it has shrunk to half of the limit", async () => {
  const logged: { readonly msg: string; readonly folders: number }[] = [];
  const log = createLog("info", { write: (line) => void logged.push(JSON.parse(line)) });
  const events = eventsOf(() => undefined, log);
  const tree = (folders: number) => ({ ...treeAt(join(folder, "drop"), "1"), folders });
  events.listed(tree(WATCHED_MAX.folders));
  expect(await events.tested()).toBe(true);
  events.listed(tree(WATCHED_MAX.folders + 1));
  expect(events.arrive).toBe(false);
  events.listed(tree(WATCHED_MAX.folders));
  expect(events.arrive).toBe(false);
  events.listed(tree(WATCHED_MAX.folders / 2));
  expect(events.arrive).toBe(true);
  expect(logged.map(({ msg, folders }) => [msg, folders])).toEqual([
    ["file-system events arrive", undefined],
    ["the drop is too large for file-system events; files are found only by polls", WATCHED_MAX.folders + 1],
    ["the drop is small enough for file-system events again", WATCHED_MAX.folders / 2],
  ]);
});

it("a drop counts its own folders, and is only polled as soon as a listing finds too many", async () => {
  const { root, list, tellsOf, arrive } = await watchDrop();
  await list();
  await expect.poll(arrive).toBe(true);
  for (let at = 0; at < WATCHED_MAX.folders; at += 1) mkdirSync(join(folder, "many", `${at}`), { recursive: true });
  await rename(join(folder, "many"), join(root, "many"));
  await list();
  expect(arrive()).toBe(false);
  await rm(join(root, "many"), { recursive: true });
  await list();
  expect(arrive()).toBe(true);
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
});

it("events restart with the next listing after too many names came", async () => {
  const root = join(folder, "drop");
  let count = 0;
  const countOne = () => {
    count += 1;
  };
  const events = eventsOf(countOne, silentLog, {}, 2);
  events.listed(treeAt(root, "1"));
  expect(await events.tested()).toBe(true);
  for (let at = 0; at < 3; at += 1) await writeFile(join(root, `${at}.txt`), "1");
  await expect.poll(() => count).toBeGreaterThan(3);
  const before = count;
  events.listed(treeAt(root, "1"));
  let at = 0;
  await expect
    .poll(async () => {
      await writeFile(join(root, `${at++}.csv`), "1");
      return count - before;
    })
    .toBeGreaterThan(2);
});

it("files that are archived within the drop cause no event", async () => {
  const settings = { finish: { delivered: { archive: "done" } } };
  await mkdir(join(folder, "drop", "done"));
  const ours = await watch(settings);
  const others = await watch();
  const before = { ours: ours.count, others: others.count };
  await writeFile(join(folder, "drop", "done", "a.csv"), "1");
  await expect.poll(() => others.count).toBeGreaterThan(before.others);
  await writeFile(join(folder, "drop", "b.csv"), "1");
  await expect.poll(() => ours.count).toBeGreaterThan(before.ours);
  await expect.poll(() => others.count - before.others).toBeGreaterThan(ours.count - before.ours);
});

it("a file whose name is not UTF-8 causes an event", async () => {
  const { root, list, tellsOf } = await watchDrop();
  await mkdir(join(root, "north"));
  await list();
  const path = Buffer.concat([Buffer.from(join(root, "north", "Z")), Buffer.from([0xe4]), Buffer.from("hler.csv")]);
  await tellsOf(() => writeFile(path, "1"));
});

it("changes in subfolders cause events as soon as a listing has read them", async () => {
  const { root, list, tellsOf } = await watchDrop();
  await list();
  const sub = join(root, "north", "meters");
  for (const round of ["a", "b"]) {
    await tellsOf(() => mkdir(sub, { recursive: true }));
    expect(await list()).toEqual([]);
    await tellsOf(() => writeFile(join(sub, `${round}.csv`), "1"));
    expect(await list()).toEqual([`north/meters/${round}.csv`]);
    await tellsOf(() => rm(join(root, "north"), { recursive: true }));
  }
});

it("changes in folders that replaced others cause events", async () => {
  const { root, list, tellsOf } = await watchDrop();
  const sub = join(root, "north", "meters");
  await mkdir(sub, { recursive: true });
  await list();
  await tellsOf(async () => {
    await rename(join(root, "north"), join(root, "north-2026"));
    await mkdir(sub, { recursive: true });
  });
  expect(await list()).toEqual([]);
  await tellsOf(() => writeFile(join(sub, "a.csv"), "1"));
  await tellsOf(() => writeFile(join(root, "north-2026", "meters", "late.csv"), "1"));
});

it("changes in a drop that replaced another cause events, at every depth", async () => {
  const { root, list, tellsOf } = await watchDrop();
  await mkdir(join(root, "north"));
  await list();
  await tellsOf(async () => {
    await rename(root, join(folder, "before"));
    await mkdir(join(root, "north"), { recursive: true });
  });
  expect(await list()).toEqual([]);
  await tellsOf(() => writeFile(join(root, "north", "a.csv"), "1"));
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
});

it("changes in a drop cause events from the next listing on when a symbolic link leads to another folder", async () => {
  const { root, list, tellsOf } = await watchDrop();
  for (const place of ["one", "two"]) await mkdir(join(folder, place, "north"), { recursive: true });
  await rm(root, { recursive: true });
  await symlink(join(folder, "one"), root);
  await list();
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
  await rm(root);
  await symlink(join(folder, "two"), root);
  expect(await list()).toEqual([]);
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
  await tellsOf(() => writeFile(join(root, "north", "a.csv"), "1"));
});

it("changes in a drop whose folder was created during the watch cause events", async () => {
  await rm(join(folder, "drop"), { recursive: true });
  const { root, list, tellsOf } = await watchDrop();
  await expect(list()).rejects.toMatchObject({ code: "HG-DROP-002" });
  await mkdir(join(root, "north"), { recursive: true });
  await list();
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
  await tellsOf(() => writeFile(join(root, "north", "a.csv"), "1"));
});
