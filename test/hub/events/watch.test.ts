/** Readers of feeds that wait. */
import { expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { createEventWatch } from "#hub/events/watch.ts";

test("readers of one account that wait leave room for those of another", async () => {
  const watch = createEventWatch({ newest: async () => new Map() }, { log: createLog("silent"), clock: systemClock });
  const left = new AbortController();
  const wait = (accountId: number) => watch.wait(accountId, 0, 60_000, left.signal);
  const first = Array.from({ length: 100 }, () => wait(1));
  expect(await wait(1)).toBe(false);
  const other = wait(2);
  left.abort();
  expect(await Promise.all([...first, other])).toEqual(Array.from({ length: 101 }, () => true));
  await watch.close();
});
