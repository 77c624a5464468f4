/** Jobs of the hub serve accounts by turns: of those whose own tests do not show it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { RollupBuilder } from "../../src/hub/data/rollups/builder.ts";
import { hubOptions } from "../../src/hub/options.ts";
import { openIngestStore, openStore } from "../../src/hub/store/open.ts";
import type { ReadSpan } from "../../src/hub/store/rollups/rollups.ts";
import type { PointStore } from "../../src/hub/store/store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { silentLog } from "../../src/support/log.ts";
import { rawOptions, temporaryDirectory, waitingOperation } from "./fixture.ts";
import { variableFacts } from "./variable-facts.ts";

const MANY = 1_000;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.remove());

test("pushes of an account with a thousand that wait hold one of another account for two groups at most", async () => {
  const options = hubOptions.parse(rawOptions(directory.path)).store;
  const store = await openStore(options);
  for (const id of [1, 2]) await store.identity.putAccount({ id, name: `Account ${id}` });
  const ingest = await openIngestStore(options, { byDefault: 1, byAccount: new Map() }, systemClock);
  try {
    for (let nth = 0; nth < MANY; nth += 1) await store.operations.accept(waitingOperation(`many ${nth}`, []));
    await store.operations.accept({ ...waitingOperation("one", []), accountId: 2 });
    const limits = { readings: 1_000, bytes: 100 };
    const groups: (readonly { readonly accountId: number; readonly seq: number }[])[] = [];
    for (let after = 0; ; ) {
      const group = await ingest.next(after, limits);
      if (group.length === 0) break;
      groups.push(group);
      after = group.at(-1)?.seq ?? after;
      const none = { received: 0, stored: 0, replaced: 0, discarded: [] };
      const times = { started: "2026-01-01T00:00:00Z", finished: "2026-01-01T00:00:00Z" };
      await ingest.apply(group, async (_, due) => due.map(() => ({ ...none, ...times })));
    }
    const served = groups.findIndex((group) => group.some(({ accountId }) => accountId === 2));
    expect([0, 1]).toContain(served);
    expect(groups.length).toBeGreaterThan(2);
    const many = groups.flat().filter(({ accountId }) => accountId === 1);
    expect(many).toHaveLength(MANY);
    expect(many.map(({ seq }) => seq)).toEqual(many.map(({ seq }) => seq).sort((one, other) => one - other));
  } finally {
    await ingest.close();
    await store.close();
  }
});

test("rollups of an account with a thousand variables hold those of another account for two at most", async () => {
  const built: number[] = [];
  let report: (span: ReadSpan) => void = () => undefined;
  const rollups = {
    listen: (listener: typeof report) => {
      report = listener;
    },
    begin: async (variableId: number) => {
      built.push(variableId);
      return null;
    },
  };
  const points = { rollups } as unknown as PointStore;
  const builder = new RollupBuilder({ points, clock: systemClock, log: silentLog });
  const span = { zone: "UTC", fromMs: 0, endMs: 86_400_000 };
  for (let id = 1; id <= MANY; id += 1) report({ ...span, variable: { ...variableFacts(id), accountId: 1 } });
  report({ ...span, variable: { ...variableFacts(MANY + 1), accountId: 2 } });
  await expect.poll(() => built.length).toBe(MANY + 1);
  await builder.close();
  expect(built.indexOf(MANY + 1)).toBeLessThan(2);
});
