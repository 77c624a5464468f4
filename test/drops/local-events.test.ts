import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LocalEvents } from "../../src/drops/local-events.ts";
import { silentLog } from "../../src/support/log.ts";

let folder: string;
const open: LocalEvents[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  await mkdir(join(folder, "drop"));
});
afterEach(async () => {
  for (const events of open.splice(0)) await events.stop();
  await rm(folder, { recursive: true });
});

async function watch(): Promise<{ readonly events: LocalEvents; count: number }> {
  const watched = {
    events: new LocalEvents({
      drop: "in",
      root: join(folder, "drop"),
      recursive: true,
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
