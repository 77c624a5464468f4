/** The ledger of a stage whose gateway does not run: copied, lost, or replaced by an older copy. */
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestDatabase } from "../support/postgres.ts";

export interface LedgerCopies {
  copy(name: string): Promise<void>;
  lose(): Promise<void>;
  /** By a copy that was made before. */
  restore(name: string): Promise<void>;
}

/** What becomes of a ledger; `restored`: by its copy. */
export type Fate = "kept" | "lost" | "restored";

export async function suffer(fate: Fate, copies: LedgerCopies, copy: string): Promise<void> {
  if (fate === "lost") await copies.lose();
  if (fate === "restored") await copies.restore(copy);
}

const FILES = ["ledger.sqlite", "ledger.sqlite-wal"];

/** Of the SQLite file in this folder. */
export function fileCopies(folder: string): LedgerCopies {
  const take = async (from: string, to: string) => {
    await mkdir(to, { recursive: true });
    for (const name of FILES) await cp(join(from, name), join(to, name)).catch(ifMissing);
  };
  const lose = async () => {
    for (const name of [...FILES, "ledger.sqlite-shm"]) await rm(join(folder, name), { force: true });
  };
  const place = (name: string) => `${folder}-${name}`;
  return {
    lose,
    copy: (name) => take(folder, place(name)),
    restore: async (name) => {
      await lose();
      await take(place(name), folder);
    },
  };
}

function ifMissing(thrown: unknown): void {
  if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
}

/** Of a whole database, by another one of its server, since nobody may be connected to it meanwhile. */
export function databaseCopies(server: TestDatabase, url: string): LedgerCopies {
  const ledger = new URL(url).pathname.slice(1);
  const make = async (name: string, like: string) => {
    await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [like]);
    await server.query(`CREATE DATABASE ${name} TEMPLATE ${like}`);
  };
  const place = (name: string) => `${ledger}_${name.replaceAll("-", "_")}`;
  return {
    lose: () => make(ledger, "template1"),
    copy: (name) => make(place(name), ledger),
    restore: (name) => make(ledger, place(name)),
  };
}
