/**
 * Disks that are full: small file systems of their own, which only root may mount. Each test first proves
 * that the fault is there.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { FaultRig } from "./fault-rig.ts";
import { entryAt, type Field, never, openFtp, openLocal, openSftp } from "./field.ts";

const KINDS = { local: openLocal, SFTP: openSftp, FTP: openFtp("auto") } as const;
const CONTENT = "0123456789".repeat(150_000);
const SMALL = "1m";
const ENOUGH = "8m";

const mounted: string[] = [];
let rig: FaultRig | null = null;
afterEach(async () => {
  for (const folder of mounted.splice(0)) execFileSync("umount", [folder]);
  await rig?.close();
  rig = null;
});

function mount(folder: string): void {
  mkdirSync(folder, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SMALL}`, "tmpfs", folder], { stdio: "ignore" });
  mounted.push(folder);
}

function grow(folder: string): void {
  execFileSync("mount", ["-o", `remount,size=${ENOUGH}`, folder]);
}

async function expectFull(folder: string): Promise<void> {
  await expect(writeFile(join(folder, "proof"), CONTENT)).rejects.toMatchObject({ code: "ENOSPC" });
  rmSync(join(folder, "proof"));
}

/** A list of files that does not fit: each says so. */
async function expectLeft(field: Field, spool: string): Promise<void> {
  const names = Array.from({ length: 6 }, (_, at) => `piece-${at}.csv`);
  for (const name of names) await field.write(name, CONTENT.slice(0, 250_000));
  const entries = await Promise.all(names.map((name) => entryAt(field.drop, name)));
  const list = join(spool, "list");
  const fetched = await field.drop.fetch(entries, list, never);
  const full = { status: "rejected", reason: { code: "HG-DROP-013" } };
  expect(fetched.filter(({ status }) => status === "rejected")).not.toEqual([]);
  for (const one of fetched) if (one.status === "rejected") expect(one).toMatchObject(full);
  await rm(list, { force: true });
  for (const { path } of entries) await rm(join(field.root, path));
}

function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  try {
    mount(folder);
    execFileSync("umount", [folder]);
    return true;
  } catch {
    return false; // Not root, or in a container without the right to.
  } finally {
    mounted.length = 0;
    rmSync(folder, { recursive: true });
  }
}

const may = mayMount();
if (!may) console.info("skipped: full disks: file systems cannot be mounted here");

describe.skipIf(!may)(`a full disk${may ? "" : " (skipped: file systems cannot be mounted here)"}`, () => {
  test.for(Object.keys(KINDS) as (keyof typeof KINDS)[])(
    "under the spool keeps the files of a drop (%s) at the drop, and they are delivered once when space is free",
    async (kind) => {
      rig = await FaultRig.open(KINDS[kind]);
      const { field, delivered, ledger } = rig;
      const spool = join(field.outside, "spool");
      mount(spool);
      await expectFull(spool);
      await expectLeft(field, spool);
      await field.write("a.csv", CONTENT);
      for (let round = 0; round < 4; round += 1) await rig.round();
      expect(delivered).toEqual([]);
      expect((await ledger.runsIn(["claimed"])).map(({ path }) => path)).toEqual(["a.csv"]);
      expect(await readFile(join(field.root, "a.csv"), "utf8")).toBe(CONTENT);
      const [run] = await ledger.runsIn(["claimed"]);
      const failed = fetchFile(field.drop, await entryAt(field.drop, "a.csv"), join(spool, run?.id ?? ""), never);
      await expect(failed).rejects.toMatchObject({
        code: "HG-DROP-013",
        message: expect.stringContaining("no space left"),
      });

      grow(spool);
      await rig.settle();
      expect(delivered).toEqual([{ path: "a.csv", content: CONTENT }]);
    },
  );

  test("under an archive on another volume loses neither the source nor earlier archived files", async () => {
    rig = await FaultRig.open(openLocal);
    const { field } = rig;
    const archive = join(field.root, "archive");
    await mkdir(archive);
    mount(archive);
    await expectFull(archive);
    await field.write("archive/before.csv", "archived before");
    await field.write("a.csv", CONTENT);
    const entry = await entryAt(field.drop, "a.csv");
    const plan = planFinish({ action: "archive", to: "archive" }, entry, "run1");
    await expect(finishFile(field.drop, entry, plan, never)).rejects.toMatchObject({
      code: "HG-DROP-009",
      message: expect.stringContaining("no space left"),
    });
    expect(await readFile(join(field.root, "a.csv"), "utf8")).toBe(CONTENT);
    expect(await readdir(archive), "no part of a copy fills the disk further").toEqual(["before.csv"]);

    grow(archive);
    const archiving = (await field.drop.probe(never)).filter(({ about }) => about === "archive");
    expect(archiving).toEqual([{ level: "ok", about: "archive", what: "files can be moved to archive" }]);
    expect(await finishFile(field.drop, entry, plan, never)).toBe("done");
    expect(await readFile(join(archive, "a.run1.csv"), "utf8")).toBe(CONTENT);
    expect((await readdir(field.root)).toSorted()).toEqual(["archive"]);
    expect(await finishFile(field.drop, entry, plan, never), "asked again after a crash").toBe("done");
  });
});
