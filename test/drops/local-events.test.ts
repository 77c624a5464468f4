import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createDrop } from "../../src/drops/create.ts";
import { LocalEvents } from "../../src/drops/local-events.ts";
import { dropOptions } from "../../src/drops/options.ts";
import { createLog, silentLog } from "../../src/support/log.ts";
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

async function watch(): Promise<{ readonly events: LocalEvents; count: number }> {
  const watched = {
    events: new LocalEvents({
      names: "utf-8",
      drop: "in",
      root: join(folder, "drop"),
      log: silentLog,
      isClosed: () => false,
      onChange: () => {
        watched.count += 1;
      },
    }),
    count: 0,
  };
  open.push(watched.events);
  expect(await watched.events.tested()).toBe(true);
  return watched;
}

it("a file that the gateway takes away itself is no news, and what others do is", async () => {
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
  tellsOf(work: () => Promise<unknown>): Promise<void>;
}> {
  const root = join(folder, "drop");
  const drop = createDrop(dropOptions.parse({ kind: "local", name: "in", path: root }), { log: silentLog });
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
    list: () => Array.fromAsync(drop.list(never), ({ path }) => path),
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

it("a folder that cannot be watched is told once, and events count as lost from then on", async () => {
  const told: string[] = [];
  const log = createLog("warn", { write: (line) => void told.push(JSON.parse(line).msg) });
  const events = new LocalEvents({
    names: "utf-8",
    drop: "in",
    root: join(folder, "drop"),
    log,
    isClosed: () => false,
    onChange: () => undefined,
  });
  open.push(events);
  expect(await events.tested()).toBe(true);
  events.watchFolder("not there");
  expect(events.arrive).toBe(true);
  for (const letter of ["a", "b"]) events.watchFolder(letter.repeat(300));
  expect(told).toEqual(["file-system events failed; polling goes on"]);
  expect(events.arrive).toBe(false);
});

it("what happens in folders below is told as soon as a listing has looked into them, also in one that came back", async () => {
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

it("what happens in folders is told that came in the place of some that were put aside", async () => {
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

it("what happens in a drop is told that was put in the place of another, with all that is below it", async () => {
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

it("what happens in a drop is told from the next listing on when a symbolic link leads to another folder", async () => {
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

it("what happens in a drop is told whose folder was made when it was already watched", async () => {
  await rm(join(folder, "drop"), { recursive: true });
  const { root, list, tellsOf } = await watchDrop();
  await expect(list()).rejects.toMatchObject({ code: "HG-DROP-002" });
  await mkdir(join(root, "north"), { recursive: true });
  await list();
  await tellsOf(() => writeFile(join(root, "a.csv"), "1"));
  await tellsOf(() => writeFile(join(root, "north", "a.csv"), "1"));
});
