/** Hubs on one PostgreSQL that share a folder: their gateways share the work, and one finishes what the other began. */
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { usePostgres } from "../hub/fixture.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { type HubPair, startPair } from "./hub-pair.ts";

let database: TestDatabase;
let pair: HubPair;
beforeAll(async () => {
  database = await usePostgres();
});
beforeEach(async () => {
  pair = await startPair((directory) => ({ path: join(directory, "files") }));
});
afterEach(() => pair.close());

test("each file is processed once, by the work of both hubs", async () => {
  const answered = new Map<number, number>();
  const [one, other] = pair.hubs;
  for (let nth = 0; nth < 40; nth += 4) {
    const sent = [0, 1, 2, 3].map(async (at) => {
      answered.set(nth + at, await pair.send(at % 2 === 0 ? one : other, nth + at));
    });
    await Promise.all(sent);
  }
  await pair.expectOnce(other, answered);
  await pair.expectOnce(one, answered);
});

test("the files of a hub that is killed are finished by the other, once", async () => {
  const answered = new Map<number, number>();
  const [one, other] = pair.hubs;
  const killed = pair.processes[0].killed();
  let isKilled = false;
  let next = 0;
  const send = async (hub: typeof one) => {
    while (!isKilled) {
      const nth = next++;
      await pair.send(hub, nth).then(
        (id) => answered.set(nth, id),
        () => null, // What was not answered may be lost.
      );
      // The moment is in the middle of the work of both, however fast they are.
      if (answered.size === 30) pair.processes[0].child?.kill("SIGKILL");
    }
  };
  const senders = [send(one), send(one), send(other), send(other)];
  expect(await killed).toBe("SIGKILL");
  isKilled = true;
  await Promise.all(senders);
  expect(answered.size).toBeGreaterThanOrEqual(30);
  await pair.expectOnce(other, answered);
});
