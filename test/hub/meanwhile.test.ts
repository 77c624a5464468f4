/** Writes by others while a group of operations is applied. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { IngestStore } from "#hub/store/ingest.ts";
import type { Outcome } from "#hub/store/operations.ts";
import { openSqliteStore } from "#hub/store/sqlite/index.ts";
import { openSqliteIngest } from "#hub/store/sqlite/ingest.ts";
import type { HubStore } from "#hub/store/store.ts";
import { temporaryDirectory, waitingOperation } from "./fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let store: HubStore;
let ingest: IngestStore;
let siteId: number;
beforeEach(async () => {
  directory = await temporaryDirectory();
  const path = join(directory.path, "hub.sqlite");
  store = await openSqliteStore(path);
  await store.identity.putAccount({ id: 1, name: "First" });
  siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  ingest = await openSqliteIngest(path, { byDefault: 7, byAccount: new Map() }, systemClock);
});
afterEach(async () => {
  await ingest.close();
  await store.close();
  await directory.remove();
});

const outcome: Outcome = {
  ...{ received: 0, stored: 0, replaced: 0, discarded: [] },
  ...{ started: "2026-03-01T00:00:00.000Z", finished: "2026-03-01T00:00:00.000Z" },
};
const meter = { by: "sourceSerialNumber", value: "NEW", mappingConfig: "kWh", variableTypeId: undefined } as const;

/** Which variable each attempt finds; `meanwhile` happens once, after the first has been found. */
async function found(meanwhile: () => Promise<void>): Promise<readonly (number | null)[]> {
  await store.operations.accept(waitingOperation("op", []));
  const ids: (number | null)[] = [];
  const group = await ingest.next(0, { readings: 1_000, bytes: 1_000_000 });
  await ingest.apply(group, async (transaction) => {
    ids.push((await transaction.findVariable(1, meter))?.id ?? null);
    if (ids.length === 1) await meanwhile();
    return [outcome];
  });
  return ids;
}

test("a write that changes no structure lets the work be done once", async () => {
  const mail = { accountId: 1, kind: "alarm", to: "one@example.org", subject: "", text: "", html: "" } as const;
  const write = async () => void (await store.mails.queue({ ...mail, createdMs: 0, expiresMs: 1 }));
  expect(await found(write)).toEqual([null]);
});

test("a change of the structure has the work done again with what is there now", async () => {
  const create = async () => {
    const source = await store.structure.createSource(1, {
      ...{ name: "Source", siteId, sourceTypeId: 1, serialNumber: "NEW" },
    });
    const variable = { name: "Energy", sourceId: source?.id ?? 0, variableTypeId: 0, unitId: 8, mappingConfig: "kWh" };
    await store.structure.createVariable(1, variable);
  };
  expect(await found(create)).toEqual([null, expect.any(Number)]);
});
