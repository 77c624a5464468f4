/** Tables of the zones of sources: read again only after a change. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { openLookupStore } from "#gateway/runs/lookups.ts";
import { SourceZones } from "#gateway/runs/source-zones.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function opened() {
  const structure = { version: 1, reads: 0, fault: null as Error | null };
  const lookups = await openLookupStore([], folder, systemClock);
  const tables = {
    version: async () => structure.version,
    async text(service: string) {
      structure.reads += 1;
      if (structure.fault !== null) throw structure.fault;
      return `${service} ${structure.version}`;
    },
  };
  return { structure, lookups, zones: new SourceZones(tables, lookups, systemClock) };
}

test("runs of a trigger are bound at once after one of them needed the zones", async () => {
  const { structure, zones } = await opened();
  expect(await zones.atClaim("a", "account-1")).toBeNull();
  expect(structure.reads).toBe(0);
  const digest = await zones.bind("a", "account-1");
  expect(await zones.atClaim("a", "account-1")).toBe(digest);
  expect(await zones.atClaim("b", "account-1")).toBeNull();
});

test("one table serves all runs of an account until its structure changes", async () => {
  const { structure, lookups, zones } = await opened();
  const bind = () => Promise.all(["a", "b", "c"].map((trigger) => zones.bind(trigger, "account-1")));
  const [first = "", ...others] = await bind();
  expect(new Set([first, ...others, ...(await bind())])).toEqual(new Set([first]));
  expect(structure.reads).toBe(1);
  expect(await zones.bind("a", "account-2")).not.toBe(first);
  structure.version = 2;
  const second = await zones.bind("a", "account-1");
  expect(second).not.toBe(first);
  expect(structure.reads).toBe(3);
  // Runs that are bound to the former table still find it.
  const file = await lookups.zonesFor({ zones: first });
  expect(await readFile(file?.path ?? "", "utf8")).toBe("account-1 1");
  expect(await readdir(join(folder, "lookups"))).toHaveLength(3);
});

test("a table that cannot be read now is read later", async () => {
  const { structure, zones } = await opened();
  structure.fault = new Error("the database is gone");
  await expect(zones.bind("a", "account-1")).rejects.toMatchObject({
    code: "HG-MAP-020",
    message: expect.stringContaining("the database is gone"),
  });
  structure.fault = null;
  expect(await zones.bind("a", "account-1")).toMatch(/^[0-9a-f]{64}$/);
});
