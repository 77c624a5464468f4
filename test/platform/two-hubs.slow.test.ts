/** Hubs on one PostgreSQL that share a folder: their gateways share the work, and one finishes what the other began. */
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { chanceOf, roundsOf, seedOf } from "../e2e/chance.ts";
import { usePostgres } from "../hub/fixture.ts";
import { type HubPair, startPair } from "./hub-pair.ts";

let pair: HubPair;
beforeAll(async () => void (await usePostgres()));
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
  const answered = await pair.sendUntilFirstIsKilled();
  await pair.expectOnce(pair.hubs[1], answered);
});

test("hubs that are killed in turn at random moments process every answered file, once", {
  timeout: 600_000,
}, async () => {
  const answered = await pair.sendWhileKilledInTurn(roundsOf(3), chanceOf(seedOf("two hubs")));
  expect(answered.size).toBeGreaterThan(0);
  for (const hub of pair.hubs) await pair.expectOnce(hub, answered);
});
