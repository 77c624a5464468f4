/**
 * What an account that holds much can make another one wait by requests: for each route the work that one request does
 * between two turns of the event loop is counted, and small requests of another account, sent after many of it, are
 * answered before the last of these. By counts, and not by time; with SQLite, whose statements hold the main thread.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isPage } from "#hub/http/access.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";
import { type Attempt, attemptsOf, sentOf } from "./walls/attempts.ts";
import { holdEverything } from "./walls/held.ts";
import { countWork, holdMuch } from "./walls/much.ts";

/** Some 20 ms: rows that statements return or change, and characters of JSON. */
const TURN = { rows: 3_000, characters: 600_000 };
const AT_ONCE = 4;
/** Answers with as many bytes come from several turns. */
const LARGE = 400_000;
const OTHER = { as: "second", account: 2 };

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
  await holdEverything(hub);
  holdMuch(hub);
});
afterAll(() => hub.close());

async function called({ route, path, query, body }: Attempt, authorization: string) {
  const { raw, headers } = sentOf({ route, path, ...(body === undefined ? {} : { body }) });
  const answer = await fetch(`${hub.url()}${path}?${new URLSearchParams(query)}`, {
    ...{ method: route.method, headers: { ...headers, authorization } },
    ...(raw === undefined ? {} : { body: raw }),
  });
  return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
}

/** The dearest request of each route, which is the one without filters; removals come last. */
function attempts(): readonly Attempt[] {
  const routes = hub.routes.filter(({ facts }) => !isPage(facts) && facts.access !== "open" && facts.status !== 501);
  const all = routes.flatMap((route) => attemptsOf(route).slice(0, 1));
  const isRemoval = ({ route }: Attempt) => Number(route.method === "DELETE");
  return all.toSorted((one, other) => isRemoval(one) - isRemoval(other));
}

test("no request of an account that holds much keeps the main thread from the others, one or many", async () => {
  const { variableIds } = await createChain(hub, { more: OTHER });
  const [authorization, other] = [`Bearer ${await hub.token()}`, `Bearer ${await hub.token("second", 2)}`];
  const data = [{ date: "2026-03-01T00:00:00Z", value: 1 }];
  const body = [{ variableId: variableIds[0], data }];
  const small = () =>
    Promise.all([
      hub.ok("GET", `/variables/${variableIds[0]}`, { authorization: other }),
      hub.ok("POST", "/push/api/data", { authorization: other, body }),
    ]);
  const counted = countWork();
  const breaches: string[] = [];
  let many = 0;
  try {
    for (const attempt of attempts()) {
      const { method, url } = attempt.route;
      const name = `${method} ${url}`;
      counted.reset();
      const { status, bytes } = await called(attempt, authorization);
      const { rows, characters } = counted.most;
      if (status >= 500) breaches.push(`${name}: ${status}`);
      if (rows > TURN.rows || characters > TURN.characters)
        breaches.push(`${name}: ${rows} rows, ${characters} characters in one turn`);
      if (method !== "GET" || bytes < LARGE) continue;
      many += 1;
      let ended = 0;
      const all = Array.from({ length: AT_ONCE }, () => called(attempt, authorization).then(() => (ended += 1)));
      await small();
      if (ended === AT_ONCE) breaches.push(`${name}: another account waits for all ${AT_ONCE} requests`);
      await Promise.all(all);
    }
  } finally {
    counted.end();
  }
  expect(breaches).toEqual([]);
  expect(many).toBeGreaterThan(10);
}, 240_000);
