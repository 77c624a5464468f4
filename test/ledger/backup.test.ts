import { mkdtemp, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { backupLedger, openLedger, restoreLedger } from "#gateway/ledger/open.ts";
import { claimed, mapped } from "./fixtures.ts";

let folder: string;
let ledger: Ledger;
const at = (name: string) => join(folder, name);
const options = () => ({ kind: "sqlite", path: at("ledger.sqlite") }) as const;
const open = () => openLedger(options(), { clock: systemClock });
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  ledger = await open();
});
afterEach(async () => {
  await ledger.close();
  await rm(folder, { recursive: true });
});

it("a backup beside the running owner contains the committed records, and can be restored", async () => {
  const run = await mapped(ledger, "a.csv");
  const told = await ledger.trace("a.csv");
  expect(await backupLedger(options(), at("copy"))).toMatchObject({ path: at("copy"), runs: 1 });
  expect((await stat(at("copy"))).mode & 0o007).toBe(0);
  const later = await claimed(ledger, "b.csv");
  await expect(restoreLedger(options(), at("copy"), systemClock)).rejects.toMatchObject({
    code: "HG-LEDG-001",
  });
  await ledger.close();
  const { restored, replaced } = await restoreLedger(options(), at("copy"), systemClock);
  expect(restored.runs).toBe(1);
  expect(replaced).toMatchObject({ runs: 2, path: expect.stringContaining("ledger.sqlite.replaced-") });
  ledger = await open();
  expect(await ledger.trace("a.csv")).toEqual(told);
  expect(await ledger.run(later.id)).toBeNull();
  expect((await claimed(ledger, "c.csv")).id > run.id).toBe(true);
  const before = await openLedger(
    { kind: "sqlite", path: replaced?.path ?? "" },
    { clock: systemClock, readOnly: true },
  );
  expect((await before.run(later.id))?.state).toBe("claimed");
  await before.close();
});

it("a backup overwrites no file, and leaves no file when it fails", async () => {
  await writeFile(at("copy"), "something of somebody");
  await expect(backupLedger(options(), at("copy"))).rejects.toMatchObject({ code: "HG-LEDG-002" });
  await expect(backupLedger(options(), at("no/such/folder"))).rejects.toMatchObject({ code: "HG-LEDG-002" });
  expect((await readdir(folder)).filter((name) => name.endsWith(".part"))).toEqual([]);
});

it("a file that is not a ledger, damaged or newer does not replace a ledger", async () => {
  for (let count = 0; count < 200; count += 1) await mapped(ledger, `${count}.csv`);
  await backupLedger(options(), at("copy"));
  await ledger.close();
  await writeFile(at("text"), "no database at all");
  await writeFile(at("empty"), "");
  await backupLedger(options(), at("damaged"));
  await truncate(at("damaged"), (await stat(at("damaged"))).size - 40_000);
  await backupLedger(options(), at("newer"));
  const newer = new DatabaseSync(at("newer"));
  newer.exec("INSERT INTO ledger_schema VALUES (999, '999-later.sql', '')");
  newer.close();
  for (const name of ["text", "empty", "damaged", "newer", "missing"])
    await expect(restoreLedger(options(), at(name), systemClock), name).rejects.toMatchObject({
      name: "ConfigError",
    });
  ledger = await open();
  expect(await ledger.recentRuns(999)).toHaveLength(200);
});

it("a damaged ledger is kept unchanged, with its log", async () => {
  await claimed(ledger, "a.csv");
  await backupLedger(options(), at("copy"));
  await ledger.close();
  await writeFile(at("ledger.sqlite"), "overwritten by mistake");
  const { replaced } = await restoreLedger(options(), at("copy"), systemClock);
  expect((await stat(replaced?.path ?? "")).size).toBe("overwritten by mistake".length);
  ledger = await open();
  expect(await ledger.recentRuns(9)).toHaveLength(1);
});
