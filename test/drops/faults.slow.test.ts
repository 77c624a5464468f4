/**
 * What senders, networks and servers do to us. After each fault every file is in one state, nothing is lost,
 * nothing comes twice.
 */
import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { FaultRig } from "./fault-rig.ts";
import { type OpenField, openFtp, openLocal, openSftp, type Settings } from "./field.ts";

const KINDS: Readonly<Record<string, OpenField>> = {
  local: openLocal,
  SFTP: openSftp,
  FTP: openFtp("auto"),
  "FTP without MLSD": openFtp("list"),
  "FTP that tells a wrong passive address": openFtp("auto", {
    extendedPassive: false,
    passiveAddress: "127.9.9.9",
  }),
};
const REMOTE = Object.keys(KINDS).filter((kind) => kind !== "local");

let rig: FaultRig;
afterEach(() => rig.close());

async function start(kind: string, settings: Settings = {}): Promise<FaultRig> {
  rig = await FaultRig.open(KINDS[kind] ?? openLocal, settings);
  return rig;
}

const big = (fill: string) => fill.repeat(1_500_000);

describe.for(Object.keys(KINDS))("%s", (kind) => {
  test("a file that is appended to slowly is picked up once, as a whole", async () => {
    const { field, delivered } = await start(kind);
    let content = "";
    for (let part = 0; part < 5; part += 1) {
      content += `part ${part}\n`;
      await field.write("a.csv", content);
      await rig.round();
    }
    expect(delivered).toEqual([]);
    await rig.settle();
    expect(delivered).toEqual([{ path: "a.csv", content }]);
  });

  test("a file whose sender stalls and continues is delivered completely in the end", async () => {
    const { field, delivered } = await start(kind, { finish: { delivered: "leave" } });
    await field.write("a.csv", "first half", new Date("2026-03-01T00:00:00Z"));
    await rig.settle();
    await field.write("a.csv", "first half and second", new Date("2026-03-01T00:05:00Z"));
    await rig.settle();
    expect(delivered.map(({ content }) => content)).toEqual(["first half", "first half and second"]);
  });

  test("a file that is replaced between its claim and its fetch is fetched in its new version", async () => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", "old", new Date("2026-03-01T00:00:00Z"));
    await rig.poll();
    expect(await rig.poll()).toMatchObject({ claimed: 1 });
    await field.write("a.csv", "newer", new Date("2026-03-01T00:05:00Z"));
    await rig.deliver();
    await rig.settle();
    expect(delivered).toEqual([{ path: "a.csv", content: "newer" }]);
  });

  test("a file that vanishes before its fetch has gone, and is picked up when it is back", async () => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", "content");
    await rig.poll();
    expect(await rig.poll()).toMatchObject({ claimed: 1 });
    await rm(join(field.root, "a.csv"));
    await rig.deliver();
    await rig.settle();
    expect(delivered).toEqual([]);
    await field.write("a.csv", "content");
    await rig.settle();
    expect(delivered).toEqual([{ path: "a.csv", content: "content" }]);
  });

  test("a file that is renamed is picked up only under its last name", async () => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv.part", "content");
    await rig.settle();
    await rename(join(field.root, "a.csv.part"), join(field.root, "a.csv"));
    await rig.settle();
    expect(delivered).toEqual([{ path: "a.csv", content: "content" }]);
  });

  test("equal bytes are a duplicate, and other bytes are not", async () => {
    const { field, delivered } = await start(kind);
    const times = ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"];
    for (const [at, content] of ["content", "content", "CONTENT"].entries()) {
      await field.write("a.csv", content, new Date(times[at] ?? ""));
      await rig.settle();
      if (at === 1) expect(await rig.ledger.arrivalsIn("field", ["duplicate"])).toHaveLength(1);
    }
    expect(delivered.map(({ content }) => content)).toEqual(["content", "CONTENT"]);
  });

  test.for([-3_600_000, 3_600_000])("a clock that is off by %i ms makes no difference", async (offMs) => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", "content", new Date(Temporal.Now.instant().epochMilliseconds + offMs));
    await rig.settle();
    expect(delivered).toHaveLength(1);
  });

  test("a file that is rewritten within the second in which it settles is fetched in its last version", async () => {
    const { field, delivered } = await start(kind);
    const second = new Date("2026-03-01T00:00:00Z");
    await field.write("a.csv", "one", second);
    await rig.poll();
    await field.write("a.csv", "two", second);
    await rig.settle();
    expect(delivered).toEqual([{ path: "a.csv", content: "two" }]);
  });
});

describe.for(REMOTE)("%s", (kind) => {
  test.for([0, 1, 65_536, 1_000_000, 1_499_999])("a connection cut at byte %i costs nothing", async (at) => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", big("x"));
    if (field.faults !== null) field.faults.cutAfterBytes = at;
    await rig.settle();
    expect(field.faults?.cutAfterBytes, "the connection was cut").toBeNull();
    expect(delivered.map(({ path, content }) => [path, content === big("x")])).toEqual([["a.csv", true]]);
  });

  test("a file that is replaced while it is fetched is fetched in its new version", async () => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", big("x"), new Date("2026-03-01T00:00:00Z"));
    let replaced = false;
    if (field.faults !== null) {
      field.faults.cutAfterBytes = 500_000;
      field.faults.onCut = () => {
        const later = new Date("2026-03-01T00:05:00Z");
        writeFileSync(join(field.root, "a.csv"), big("y"));
        utimesSync(join(field.root, "a.csv"), later, later);
        replaced = true;
      };
    }
    await rig.settle();
    expect(replaced).toBe(true);
    expect(delivered.map(({ content }) => content === big("y"))).toEqual([true]);
  });

  test("a file that vanishes while it is fetched has gone", async () => {
    const { field, delivered } = await start(kind);
    await field.write("a.csv", big("x"));
    if (field.faults !== null) {
      field.faults.cutAfterBytes = 500_000;
      field.faults.onCut = () => rmSync(join(field.root, "a.csv"));
    }
    await rig.settle();
    expect(delivered).toEqual([]);
  });

  test("a transfer that stalls on an open connection is given up, and the complete file is fetched later", async () => {
    const { field, delivered } = await start(kind, { timeouts: { data: "500ms", connect: "500ms" } });
    await field.write("a.csv", big("x"));
    await rig.poll();
    expect(await rig.poll()).toMatchObject({ claimed: 1 });
    if (field.faults !== null) field.faults.stallAfterBytes = 500_000;
    await rig.deliver();
    expect(delivered).toEqual([]);
    expect(field.faults?.silent, "it stalled").toBe(true);
    if (field.faults !== null) field.faults.silent = false;
    await rig.settle();
    expect(delivered.map(({ content }) => content === big("x"))).toEqual([true]);
  });

  test("a server that goes silent and recovers costs only time", async () => {
    const { field, delivered } = await start(kind, { timeouts: { data: "500ms", connect: "500ms" } });
    await field.write("a.csv", "content");
    await rig.poll();
    if (field.faults !== null) field.faults.silent = true;
    expect(await rig.poll()).toMatchObject({ gone: 0, error: { code: "HG-DROP-001" } });
    if (field.faults !== null) field.faults.silent = false;
    expect(await rig.poll()).toMatchObject({ claimed: 1 });
    if (field.faults !== null) field.faults.silent = true;
    await rig.deliver();
    expect(delivered).toEqual([]);
    if (field.faults !== null) field.faults.silent = false;
    await rig.settle();
    expect(delivered).toHaveLength(1);
  });
});

test("a server with another host key receives no credentials, and its files have not gone", async () => {
  const { field, delivered } = await start("SFTP", { timeouts: { idle: "1ms" } });
  await field.write("a.csv", "content");
  await rig.poll();
  await expect.poll(() => field.connections()).toBe(0);
  if (field.faults !== null) field.faults.otherHostKey = true;
  expect(await rig.poll()).toMatchObject({ gone: 0, claimed: 0, error: { code: "HG-DROP-004" } });
  if (field.faults !== null) field.faults.otherHostKey = false;
  await rig.settle();
  expect(delivered).toHaveLength(1);
});
