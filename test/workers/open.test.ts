/** What a gateway's mapping does before the first file comes. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { mappersOptions, workersOptions } from "#mapping/options.ts";
import { openMapping } from "#mapping/workers/open.ts";

/** Processes of this one that wait for files of mappers that come with Headgate. */
async function waitingProcesses(): Promise<number> {
  const lines: string[] = [];
  for (const thread of await readdir("/proc/self/task")) {
    const children = await readFile(`/proc/self/task/${thread}/children`, "utf8").catch(() => "");
    for (const child of children.split(" ").filter(Boolean))
      lines.push(await readFile(`/proc/${child}/cmdline`, "utf8").catch(() => ""));
  }
  return lines.filter((line) => line.includes('"own":{')).length;
}

test.skipIf(process.platform !== "linux")(
  "a process is started for the first existing mapper, and for no other, and ends with the gateway",
  async () => {
    const root = await mkdtemp(join(tmpdir(), "headgate-"));
    const options = { workers: workersOptions.parse({}), mappers: mappersOptions.parse({ folders: [] }) };
    const mapping = openMapping(options, { root }, { log: silentLog, clock: systemClock });
    try {
      expect(await waitingProcesses()).toBe(0);
      await mapping.start(["no such mapper", "standard", "readings"]);
      await expect.poll(waitingProcesses, { timeout: 60_000 }).toBe(1);
    } finally {
      await mapping.close();
      await rm(root, { recursive: true });
    }
    expect(await waitingProcesses()).toBe(0);
  },
);

test.skipIf(process.platform !== "linux")("the process does not wait for the copy of its mapper", async () => {
  const root = await mkdtemp(join(tmpdir(), "headgate-"));
  // No copy can be made here.
  await writeFile(join(root, "mappers"), "no folder");
  const options = { workers: workersOptions.parse({}), mappers: mappersOptions.parse({ folders: [] }) };
  const mapping = openMapping(options, { root }, { log: silentLog, clock: systemClock });
  try {
    mapping.prepare(["standard"]);
    await expect.poll(waitingProcesses, { timeout: 60_000 }).toBe(1);
  } finally {
    await mapping.close();
    await rm(root, { recursive: true });
  }
});
