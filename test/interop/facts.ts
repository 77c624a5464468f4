/** What must hold at every real server, beyond the conformance suite. */

import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError, RejectedError, TransientError } from "#core/errors.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { entryAt, type Field, listed, never, type OpenField } from "../drops/field.ts";
import { digestOf } from "./keys.ts";
import type { Person } from "./people.ts";
import type { RealServer } from "./real-server.ts";

const MANY = 5_000;
const LARGE_BYTES = 64_000_000;
/** Names that have broken one program or another. */
const NAMES = [
  "two  spaces.csv",
  " leading space.csv",
  "-rf.csv",
  "größe 電力 ☂.csv",
  "e\u0301 decomposed.csv",
  "100%41 #1 & more?.csv",
  "[a-z]*{x}.csv",
  'it\'s "quoted".csv',
  "a -> b.csv",
  "20260301001500 x.csv",
  "back\\slash.csv",
  "tab\there.csv",
];

/** Names that a server lists and then refuses, or does not even list. */
export interface Quirks {
  readonly refuses?: readonly string[];
  readonly hides?: readonly string[];
}

export function facts(server: () => RealServer, open: OpenField, { refuses = [], hides = [] }: Quirks = {}): void {
  let field: Field;
  beforeEach(async () => {
    field = await open();
  });
  afterEach(() => field.close());

  test(`lists ${MANY} files of one folder, each once, and again the same`, async () => {
    await writeMany(field.root, server().owner);
    const first = await listed(field.drop);
    expect(new Set(first.map((entry) => entry.path)).size).toBe(MANY);
    expect(first).toHaveLength(MANY);
    expect(await listed(field.drop)).toEqual(first);
  });

  test.for(refuses)("rejects %j, which the server lists and refuses", async (name) => {
    await field.write(name, "content");
    await field.write("fine.csv", "content");
    const fetched = async (path: string) =>
      fetchFile(field.drop, await entryAt(field.drop, path), join(field.outside, "copy"), never);
    const failure = await failureOf(fetched(name));
    expect(failure).toBeInstanceOf(RejectedError);
    expect(failure).toMatchObject({ code: "HG-DROP-007", message: expect.stringContaining(name) });
    expect(await fetched("fine.csv")).toMatchObject({ bytes: 7 });
  });

  test.for(hides)("lists the rest where the server hides %j", async (name) => {
    await field.write(name, "content");
    await field.write("fine.csv", "content");
    expect((await listed(field.drop)).map((entry) => entry.path)).toEqual(["fine.csv"]);
  });

  const usable = NAMES.filter((name) => !refuses.includes(name) && !hides.includes(name));
  test.for(usable)("lists, fetches and archives %j", async (name) => {
    await field.write(`in/${name}`, `content of ${name}`);
    const [entry, ...more] = await listed(field.drop);
    expect(more).toEqual([]);
    if (entry === undefined) return expect.unreachable("it was not listed");
    expect(entry.path).toBe(`in/${name}`);
    const copy = join(field.outside, "copy");
    expect(await fetchFile(field.drop, entry, copy, never)).toMatchObject({
      sha256: digestOf(`content of ${name}`),
    });
    const plan = planFinish({ action: "archive", to: "done/2026" }, entry, "run1");
    if (plan.action !== "archive") return expect.unreachable();
    expect(await finishFile(field.drop, entry, plan, never)).toBe("done");
    expect(await readFile(join(field.root, plan.to), "utf8")).toBe(`content of ${name}`);
  });

  test("reports times by the second, of old files and of new ones", async () => {
    for (const start of [Date.parse("2024-03-01T00:15:00Z"), Date.now() - 3_600_000]) {
      const times: string[] = [];
      for (const second of [0, 1, 2]) {
        await field.write("a.csv", "content", new Date(start + second * 1000));
        times.push((await entryAt(field.drop, "a.csv")).mtime);
      }
      expect(new Set(times).size).toBe(3);
    }
  });

  test("a file that is replaced while it is fetched is refused temporarily, and then fetched", async () => {
    await field.write("a.bin", Buffer.alloc(LARGE_BYTES, "a"));
    await field.write("next", Buffer.alloc(LARGE_BYTES, "b"), new Date("2026-03-01T00:15:00Z"));
    const entry = await entryAt(field.drop, "a.bin");
    const copy = join(field.outside, "copy");
    let ended = false;
    const fetched = fetchFile(field.drop, entry, copy, never);
    const seen = fetched.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    void seen.then(() => {
      ended = true;
    });
    while (!ended && !((await sizeOf(copy)) > 0));
    await rename(join(field.root, "next"), join(field.root, "a.bin"));
    const failure = await seen;
    expect(failure).toBeInstanceOf(TransientError);
    expect(failure).toMatchObject({ code: "HG-DROP-008" });
    const now = await fetchFile(field.drop, await entryAt(field.drop, "a.bin"), copy, never);
    expect(now.sha256).toBe(digestOf(Buffer.alloc(LARGE_BYTES, "b")));
  });

  test("a file without the right to read it is rejected, and the message names it", async () => {
    await field.write("in/secret.csv", "content");
    const file = join(field.root, "in/secret.csv");
    await chown(file, 0, 0);
    await chmod(file, 0o000);
    await cannot(server().owner, "cat", file);
    const [entry] = await listed(field.drop);
    if (entry === undefined) return expect.unreachable("it was not listed");
    const failure = await failureOf(fetchFile(field.drop, entry, join(field.outside, "copy"), never));
    expect(failure).toBeInstanceOf(RejectedError);
    expect(failure).toMatchObject({
      code: "HG-DROP-007",
      message: expect.stringMatching(/not permitted for in\/secret\.csv in drop field/),
      hint: expect.stringContaining("right"),
    });
  });

  test("a folder without the right to write leaves the file at its path, with a finding", async () => {
    await field.write("in/a.csv", "content");
    await chown(join(field.root, "in"), 0, 0);
    await cannot(server().owner, "mv", join(field.root, "in/a.csv"), join(field.root, "in/b.csv"));
    const entry = await entryAt(field.drop, "in/a.csv");
    const plan = planFinish({ action: "archive", to: "archive" }, entry, "run1");
    for (const action of [plan, { action: "delete" } as const]) {
      const failure = await failureOf(finishFile(field.drop, entry, action, never));
      expect(failure).toMatchObject({ message: expect.stringContaining("in/a.csv") });
      expect(failure instanceof RejectedError || failure instanceof TransientError).toBe(true);
    }
    expect(await readFile(join(field.root, "in/a.csv"), "utf8")).toBe("content");
    expect(await listed(field.drop)).toEqual([entry]);
  });

  test("a folder that may not be listed fails the listing, so that none of its files has gone", async () => {
    await field.write("a.csv", "content");
    await field.write("in/b.csv", "content");
    await chown(join(field.root, "in"), 0, 0);
    await chmod(join(field.root, "in"), 0o000);
    await cannot(server().owner, "ls", join(field.root, "in"));
    const failure = await failureOf(listed(field.drop));
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({ code: "HG-DROP-007" });
  });

  test("a check names the server, and the rule that lacks its right, when writing is not permitted", async () => {
    await field.write("a.csv", "content");
    const fine = await field.drop.probe(never);
    expect(fine.filter(({ level }) => level === "failed")).toEqual([]);
    const said = Object.fromEntries(fine.map(({ about, what }) => [about, what]));
    expect(said["server"]).toMatch(/OpenSSH_|vsFTPd|ProFTPD|mod_sftp|Pure-FTPd/);
    expect(said["clock"]).toMatch(/^agrees with ours/);
    if ("certificate" in said) expect(said["TLS session"]).toMatch(/TLSv1\.[23]/);
    else expect(said["host key"]).toMatch(/^\S+ SHA256:[\w+/]{43}, pinned in hostKeys \(1 of 1\)$/);

    await chown(field.root, 0, 0);
    await chmod(field.root, 0o755);
    await cannot(server().owner, "touch", join(field.root, "b.csv"));
    const found = await field.drop.probe(never);
    expect(found.filter(({ level }) => level === "failed")).toEqual([
      {
        level: "failed",
        about: "rights",
        what: expect.stringMatching(/is refused \(.+\), which finish\.delivered: archive needs$/),
        hint: expect.stringContaining(server().owner.username),
      },
    ]);
    const saidNow = Object.fromEntries(found.map(({ about, what }) => [about, what]));
    expect(saidNow["listing"]).toContain("1 files listed");
    expect(saidNow["clock"]).toMatch(/^not known/);
    expect(await readdir(field.root)).toEqual(["a.csv"]);
  });

  test("a server that is restarted between two polls is used again", async () => {
    await field.write("a.csv", "content");
    const entries = await listed(field.drop);
    await server().stop();
    try {
      const failure = await failureOf(listed(field.drop));
      expect(failure).toBeInstanceOf(TransientError);
      expect(failure).toMatchObject({ code: "HG-DROP-001" });
    } finally {
      await server().restart();
    }
    // The first call may still find out that an old connection is gone.
    await expect.poll(() => listed(field.drop).catch(() => null)).toEqual(entries);
  });

  test("a server that loses its sessions without a restart fails one poll at most", async () => {
    await field.write("a.csv", "content");
    const entries = await listed(field.drop);
    await server().stop();
    await server().restart();
    await listed(field.drop).catch((thrown: unknown) => expect(thrown).toBeInstanceOf(TransientError));
    expect(await listed(field.drop)).toEqual(entries);
  });
}

export async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (thrown: unknown) => thrown,
  );
}

async function writeMany(root: string, owner: Person): Promise<void> {
  const folder = join(root, "many");
  await mkdir(folder);
  await chown(folder, owner.uid, owner.gid);
  for (let at = 0; at < MANY; at += 100) {
    const names = Array.from({ length: 100 }, (_, next) => join(folder, `meter ${at + next}.csv`));
    await Promise.all(names.map((name) => writeFile(name, "x")));
  }
}

/** Proves that the fault is there: the user of the server cannot do it either. */
async function cannot(person: Person, program: string, ...args: string[]): Promise<void> {
  const tried = promisify(execFile)(program, args, { uid: person.uid, gid: person.gid });
  await expect(tried).rejects.toThrow(/Permission denied/);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    (status) => status.size,
    () => 0, // It is not there yet.
  );
}
