/** Many polls leave nothing behind. `HEADGATE_SOAK=10000` makes them as many as the acceptance asks for. */
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FaultRig } from "./fault-rig.ts";
import { type OpenField, openFtp, openLocal, openSftp } from "./field.ts";

const POLLS = Number(process.env["HEADGATE_SOAK"] ?? 300);
const KINDS: Readonly<Record<string, OpenField>> = {
  local: openLocal,
  SFTP: openSftp,
  FTP: openFtp("auto"),
  "FTP without MLSD": openFtp("list"),
};

interface Held {
  readonly descriptors: number;
  readonly resources: number;
  readonly connections: number;
}

describe.for(Object.entries(KINDS))("%s", ([, open]) => {
  test(`holds after ${POLLS} polls what it held after a few`, { timeout: 60_000 + POLLS * 100 }, async () => {
    const rig = await FaultRig.open(open, { settle: { observations: 1 } });
    try {
      const held = (): Held => ({
        descriptors: descriptors(),
        resources: process.getActiveResourcesInfo().length,
        connections: rig.field.connections(),
      });
      let before: Held | null = null;
      for (let poll = 1; poll <= POLLS; poll += 1) {
        await rig.field.write(`in/${poll}.csv`, "content");
        const cut = poll % 50 === 0;
        if (cut && rig.field.faults !== null) rig.field.faults.cutAfterBytes = 0;
        await rig.round();
        if (cut) await rig.round();
        if (poll % 20 === 0) await rm(join(rig.field.root, "archive"), { recursive: true, force: true });
        if (poll === 20) before = held();
      }
      for (let round = 0; round < 5; round += 1) await rig.round();
      expect(rig.delivered).toHaveLength(POLLS);
      await expect.poll(() => excess(before, held()), { timeout: 5_000 }).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});

/** What is held more than before; a few come and go with the runner. */
function excess(before: Held | null, now: Held): string[] {
  const more = (name: keyof Held, some: number) =>
    now[name] > (before?.[name] ?? 0) + some ? [`${now[name] - (before?.[name] ?? 0)} ${name}`] : [];
  return [...more("descriptors", 3), ...more("resources", 3), ...more("connections", 0)];
}

function descriptors(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}
