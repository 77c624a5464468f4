/** Runs of calculations, whose nodes end in the middle. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock as clock } from "#core/clock.ts";
import { silentLog as log } from "#core/log.ts";
import { judgeDefinition } from "#hub/calculated/definition/change.ts";
import { HeldLanes, readyVariables } from "#hub/calculated/recalculation/order.ts";
import { acceptPart } from "#hub/calculated/recalculation/recalculation.ts";
import { hubOptions } from "#hub/options.ts";
import { SUSPICIOUS_TAKEOVERS, TAKEOVERS_MAX } from "#hub/store/calculated/claims.ts";
import { openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { calculatedBody } from "#wire/index.ts";
import { rawOptions, temporaryDirectory } from "../fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let store: HubStore;
let id: number;

beforeEach(async () => {
  directory = await temporaryDirectory();
  store = await openStore(hubOptions.parse(rawOptions(directory.path)).store);
  await store.identity.putAccount({ id: 1, name: "First" });
  const siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  const sourceId = (await store.structure.createSource(1, { name: "Source", siteId, sourceTypeId: 1 }))?.id ?? 0;
  const variable = { name: "Energy", sourceId, variableTypeId: 0, unitId: 8 };
  const variableId = (await store.structure.createVariable(1, variable)) ?? 0;
  const variables = [{ alias: "a", variableId }];
  const calculated = calculatedBody.parse({ calculatedVariableFormulas: [{ formula: "= a", variables }] });
  const judge = (facts: Parameters<typeof judgeDefinition>[0], wanted: typeof calculated) =>
    judgeDefinition(facts, wanted, "webr");
  id = (await store.structure.createVariable(1, { ...variable, calculated }, judge)) ?? 0;
});
afterEach(async () => {
  await store.close();
  await directory.remove();
});

/** Claims of a node whose leases have ended at once, as those of a killed node have after a minute. */
const claim = (isAlone = true) =>
  store.claims.claim(1, { node: "n", nowMs: 1, untilMs: 0, defaultVersion: "v", isAlone, waits: true }, readyVariables);
const newest = async () => (await store.calculations.list(1, { variableIds: [id] }, { offset: 0, limit: 1 })).rows[0];

test("a run that ends its node again and again fails, and is alone before", async () => {
  expect(await claim()).toMatchObject({ variableId: id, takeovers: 0 });
  for (let nth = 1; nth < SUSPICIOUS_TAKEOVERS; nth += 1) expect(await claim(false)).toMatchObject({ takeovers: nth });
  expect(await claim(false)).toBe("alone");
  for (let nth = SUSPICIOUS_TAKEOVERS; nth <= TAKEOVERS_MAX; nth += 1)
    expect(await claim()).toMatchObject({ takeovers: nth });
  expect(await claim()).toBeNull();
  expect(await newest()).toMatchObject({ state: "failed", message: expect.stringContaining("lack of memory") });
});

test("a run that makes progress, waits, or is left in peace may be taken over as often as it likes", async () => {
  const run = await claim();
  if (run === null || typeof run === "string") throw new Error("nothing was claimed");
  for (let nth = 0; nth < TAKEOVERS_MAX; nth += 1) {
    expect(await claim()).toMatchObject({ takeovers: 1 });
    await store.claims.pass(run.id, "n", { cursorMs: nth, outputs: 0, dropped: 0 });
    expect(await claim()).toMatchObject({ takeovers: 1 });
    await store.claims.leave(run.id, "n");
    expect(await claim()).toMatchObject({ takeovers: 0 });
    await store.claims.wait(run.id, "n", "the engine is away", 0);
    expect(await claim()).toMatchObject({ takeovers: 0 });
  }
});

test("dates of a failed run are due again with the next success, and are counted until then", async () => {
  const owned = async () => {
    const run = await claim();
    if (run === null || typeof run === "string") throw new Error("nothing was claimed");
    return run;
  };
  const due = async () => (await store.calculations.due(1)).map(({ fromMs, toMs }) => [fromMs, toMs]);
  const failed = async () => (await store.calculations.counts()).failed;
  const mark = (fromMs: number, toMs: number) =>
    store.calculated.mark(1, [{ variableId: id, inputId: null, fromMs, toMs, cause: "force" }], 0);
  const first = await owned();
  await store.claims.begin(first.id, "n", { beginMs: 0, endMs: 300, partMs: 100 });
  await store.claims.pass(first.id, "n", { cursorMs: 100, outputs: 0, dropped: 0 });
  expect(await store.claims.fail(first, "n", "wrong", 0)).toBe(true);
  expect([await due(), await failed()]).toEqual([[], 1]);
  await mark(500, 600);
  expect(await store.claims.complete(await owned(), "n", null, 0)).toBe(true);
  // What was handed over before the failure is not calculated again.
  expect(await due()).toEqual([[101, 300]]);
  expect(await store.claims.fail(await owned(), "n", "wrong", 0)).toBe(true);
  expect([await due(), await failed()]).toEqual([[], 1]);
  await mark(0, 1_000);
  expect(await store.claims.complete(await owned(), "n", null, 0)).toBe(true);
  expect([await due(), await failed()]).toEqual([[], 0]);
});

test("a lane that was held at each attempt for 5 s is waited for", () => {
  const lanes = new HeldLanes();
  expect([lanes.isAwaited(1, 0), lanes.isEmpty]).toEqual([false, true]);
  lanes.held(1, 100);
  lanes.held(1, 4_000);
  expect([lanes.isAwaited(1, 5_099), lanes.isAwaited(1, 5_100), lanes.isAwaited(2, 9_000)]).toEqual([
    false,
    true,
    false,
  ]);
  lanes.free(1);
  lanes.held(1, 6_000);
  expect(lanes.isAwaited(1, 10_999)).toBe(false);
  lanes.keep([2]);
  expect(lanes.isEmpty).toBe(true);
});

test("a part is accepted once, and never in the place of another one", async () => {
  const parts = { ingestion: { wake: () => undefined }, clock, log };
  const part = { calculationId: 1, accountId: 1, sent: 0, outputs: 1, dropped: 0, body: Buffer.from("[]") };
  const recorded: number[] = [];
  const accept = (cursorMs: number, digest: string, dies = false) => {
    const sent = async () => void (dies || recorded.push(cursorMs));
    return acceptPart({ ...part, cursorMs, digest }, { ...parts, store: { ...store, claims: { sent } } });
  };
  const waiting = async () => (await store.operations.list(1, "accepted", { offset: 0, limit: null })).rows.length;
  // The node ends before it has recorded the part. The next one finds other rows in it, or none.
  await accept(100, "one", true);
  await accept(100, "one");
  await accept(100, "other");
  expect([await waiting(), recorded]).toEqual([1, [100, 100]]);
  await accept(200, "next");
  expect([await waiting(), recorded]).toEqual([2, [100, 100, 200]]);
});
