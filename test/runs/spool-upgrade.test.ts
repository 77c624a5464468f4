/**
 * A spool and its ledger as the version before one format for all segments left them (`spool-before-trailers.br`): row
 * indexes without a digest beside some segments, one file for the runs of a list, children of splits behind a trailer.
 */
import { linkSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { brotliDecompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "../../src/gateway.ts";
import type { Run } from "../../src/model.ts";
import { bodiesOf } from "../../src/segment/payloads.ts";
import { findReadings } from "../../src/spool/search.ts";
import { openSpool } from "../../src/spool/spool.ts";
import { drop, GatewayRig, until } from "./gateway-rig.ts";

/** The rows of each file: consecutive quarter hours of one variable, whose values are their numbers and a half. */
const FILES = [
  { path: "kept-0.csv", variable: 1, first: 0, count: 50 },
  { path: "kept-1.csv", variable: 2, first: 100, count: 50 },
  { path: "kept-2.csv", variable: 3, first: 200, count: 50 },
  { path: "kept-alone.csv", variable: 1, first: 1_000, count: 90 },
  { path: "kept-large.csv", variable: 2, first: 5_000, count: 2_000 },
  { path: "mapped-0.csv", variable: 1, first: 10_000, count: 30 },
  { path: "mapped-1.csv", variable: 2, first: 10_100, count: 30 },
  { path: "mapped-2.csv", variable: 3, first: 10_200, count: 30 },
  { path: "mapped-split-0.csv", variable: 1, first: 15_000, count: 50 },
  { path: "mapped-split-1.csv", variable: 2, first: 15_100, count: 50 },
  { path: "mapped-alone.csv", variable: 1, first: 20_000, count: 90 },
  { path: "mapped-large.csv", variable: 2, first: 30_000, count: 2_000 },
] as const;

type Packed = { readonly link: string } | { readonly at: number; readonly length: number };

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
  for (const [at, name] of ["one", "two", "three"].entries()) expect(await rig.variable(name, true)).toBe(at + 1);
  const bytes = brotliDecompressSync(readFileSync(join(import.meta.dirname, "spool-before-trailers.br")));
  const end = bytes.indexOf("\n");
  const files = Object.entries(JSON.parse(bytes.toString("utf8", 0, end)) as Record<string, Packed>);
  for (const [name, file] of files) {
    const path = join(rig.folder, "state", name);
    mkdirSync(dirname(path), { recursive: true });
    if ("link" in file) linkSync(join(rig.folder, "state", file.link), path);
    else writeFileSync(path, bytes.subarray(end + 1 + file.at, end + 1 + file.at + file.length));
    // The times that the ledger has of the files at the drops.
    const seen = new Date(name.includes("large") ? "2026-03-02" : "2026-03-01");
    if (name.endsWith(".csv")) utimesSync(path, seen, seen);
  }
});
afterEach(() => rig.close());

const DROPS = ["in", "alone", "split", "large"].map((name) => drop(name));
const root = () => join(rig.folder, "state/spool");

const open = () =>
  rig.open({
    drops: DROPS,
    push: {
      batch: { points: 40 },
      confirm: { by: "read-back", pollEvery: "50ms" },
      retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
    },
  });

async function runsOf(gateway: Gateway): Promise<ReadonlyMap<string, Run>> {
  const runs = await gateway.ledger.recentRuns(50);
  return new Map(runs.map((run) => [run.path, run]));
}

/** Each file has its input, its first, middle and last reading with their rows, and its batches. */
async function expectAllFound(gateway: Gateway, isKept: boolean): Promise<void> {
  const spool = await openSpool({
    ...{ path: root(), budget: 1e9, headroom: 0 },
    keepInputs: { age: 1e12, size: 1e12 },
  });
  const runs = await runsOf(gateway);
  for (const { path, variable, first, count } of FILES) {
    const run = runs.get(path) ?? expect.fail(`no run of ${path}`);
    const input = (await spool.openInput(run.id, isKept ? "kept" : undefined)) ?? expect.fail(path);
    expect((await text(input)).split("\n")[count], path).toContain(`${first + count - 1}.5`);
    const slices = await gateway.ledger.batches(run.id);
    const read = (await spool.openSegment(run.id)) ?? expect.fail(path);
    expect((await Array.fromAsync(bodiesOf(read, slices))).length, path).toBe(slices.length);
    for (const nth of [0, Math.floor(count / 2), count - 1]) {
      const atMs = Date.UTC(2026, 0, 1) + (first + nth) * 900_000;
      const query = { words: `variableId=${variable}`, fields: { variableId: variable }, atMs };
      expect(await Array.fromAsync(findReadings(root(), query)), path).toMatchObject([
        { runId: run.id, row: 2 + nth, value: first + nth + 0.5 },
      ]);
    }
  }
  await spool.close();
}

it("is read, delivered with the same batches, split further and kept", async () => {
  const gateway = await open();
  const before = new Map<string, readonly string[]>();
  for (const [path, { id }] of await runsOf(gateway))
    before.set(
      path,
      (await gateway.ledger.batches(id)).map(({ operationId, digest }) => `${operationId} ${digest}`),
    );
  await until("all is done", () => gateway.isIdle());
  const runs = await runsOf(gateway);
  for (const { path } of FILES) {
    expect(runs.get(path)?.state, path).toBe("confirmed");
    const after = await gateway.ledger.batches(runs.get(path)?.id ?? "");
    expect(after.map(({ operationId, digest }) => `${operationId} ${digest}`)).toEqual(before.get(path));
  }
  const sent = FILES.filter(({ path }) => path.startsWith("mapped"));
  for (const variable of [1, 2, 3]) {
    const due = sent.filter((file) => file.variable === variable).reduce((sum, { count }) => sum + count, 0);
    expect(await rig.versions(variable)).toBe(due);
  }
  await until("all is kept", async () => (await runsOf(gateway)).size === FILES.length);
  await expectAllFound(gateway, true);
});

it("is searched and read while its runs wait", async () => {
  const away = { ...rig.service("hub"), push: "http://127.0.0.1:9/push" };
  const gateway = await rig.open({ services: [away], drops: DROPS });
  await expectAllFound(gateway, false);
});
