/** Many polls leave nothing behind. `HEADGATE_SOAK=10000` makes them as many as the acceptance asks for. */
import { getEventListeners } from "node:events";
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FaultRig } from "./fault-rig.ts";
import { never, type OpenField, openFtp, openLocal, openSftp } from "./field.ts";

const POLLS = Number(process.env["HEADGATE_SOAK"] ?? 100);
const KINDS: Readonly<Record<string, OpenField>> = {
  local: openLocal,
  SFTP: openSftp,
  FTP: openFtp("auto"),
  "FTP without MLSD": openFtp("list"),
};

interface Held {
  readonly descriptors: number;
  readonly resources: number;
  readonly timers: number;
  /** On the signal that outlives every call. */
  readonly listeners: number;
  readonly connections: number;
  readonly channels: number;
}

/** Running timers, also those that let the process end. */
let timers: () => number;
beforeAll(() => {
  const made = new Set<object>();
  for (const name of ["setTimeout", "setInterval"] as const) {
    const make: (...given: never) => object = globalThis[name];
    vi.spyOn(globalThis, name).mockImplementation(((...given: never) => {
      const timer = make(...given);
      made.add(timer);
      return timer;
    }) as never);
  }
  timers = () => {
    for (const timer of made) if ("_destroyed" in timer && timer._destroyed === true) made.delete(timer);
    return made.size;
  };
});
afterAll(() => void vi.restoreAllMocks());

describe.for(Object.entries(KINDS))("%s", ([, open]) => {
  test(`has after ${POLLS} polls the same memory as after a few`, {
    timeout: 60_000 + POLLS * 100,
  }, async () => {
    const rig = await FaultRig.open(open, { settle: { observations: 1 } });
    try {
      const held = (): Held => ({
        descriptors: descriptors(),
        resources: process.getActiveResourcesInfo().length,
        timers: timers(),
        listeners: getEventListeners(never, "abort").length,
        connections: rig.field.connections(),
        channels: rig.field.channels?.() ?? 0,
      });
      let before: Held | null = null;
      const leaked = new Set<string>();
      for (let poll = 1; poll <= POLLS; poll += 1) {
        await rig.field.write(`in/${poll}.csv`, "content");
        // A connection that breaks takes with it what was left open on it, so the look comes before the cut.
        const cut = poll % 50 === 0;
        if (cut) for (const what of excess(before, held())) leaked.add(what);
        if (cut && rig.field.faults !== null) rig.field.faults.cutAfterBytes = 0;
        await rig.round();
        if (cut) await rig.round();
        if (poll % 20 === 0) await rm(join(rig.field.root, "archive"), { recursive: true, force: true });
        if (poll === 5) before = held();
      }
      for (let round = 0; round < 5; round += 1) await rig.round();
      expect(rig.delivered).toHaveLength(POLLS);
      expect([...leaked]).toEqual([]);
      await expect.poll(() => excess(before, held()), { timeout: 60_000 }).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});

/** What is held more than before; a few come and go with the runner. */
function excess(before: Held | null, now: Held): string[] {
  const more = (name: keyof Held, some: number) =>
    now[name] > (before?.[name] ?? 0) + some ? [`${now[name] - (before?.[name] ?? 0)} ${name}`] : [];
  return [
    ...more("descriptors", 3),
    ...more("resources", 3),
    ...more("timers", 3),
    ...more("listeners", 0),
    ...more("connections", 0),
    ...more("channels", 0),
  ];
}

function descriptors(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}
