/** Sessions and sign-ins of one person who has very many. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({ tokenThrottle: { tokensPerMinute: 2 } });
});
afterAll(() => hub.close());

test("of more than a hundred sessions of a person, those end that were not seen for longest", async () => {
  const { people, sessions } = hub.inside().store as HubStore;
  const [plain, manager] = await Promise.all(["plain", "manager"].map(async (name) => people.userByName(name)));
  const actor = { id: null, name: "a test", impersonator: null, address: null };
  const subject = { kind: "user", id: 1, name: "plain" } as const;
  const nowMs = Date.now();
  let opened = 0;
  const open = (userId: number, at: number, impersonatorId: number | null = null) => {
    opened += 1;
    const times = { createdMs: nowMs, seenMs: nowMs + at, expiresMs: nowMs + 3_600_000 };
    const session = { userId, accountId: 1, impersonatorId, generation: "g", secondFactor: false, ...times };
    const fact = { atMs: nowMs, actor, action: "session.began", subject } as const;
    return sessions.open(`hash ${opened}`, { ...session, address: "", agent: "" }, fact);
  };
  const [own, other] = [plain?.id ?? 0, manager?.id ?? 0];
  const kept = await open(other, 0);
  const ids: number[] = [];
  for (let nth = 0; nth < 100; nth += 1) ids.push(await open(own, 1_000 - nth));
  const acting = await open(other, 1, own);
  const last = await open(own, 0);
  const left = (await sessions.openedBy(own)).map(({ id }) => id);
  expect(left).toEqual([...ids.slice(0, 99), last]);
  expect(left).not.toContain(acting);
  expect((await sessions.openedBy(other)).map(({ id }) => id)).toEqual([kept]);
});

test("sign-ins of one person beyond those of a minute have to wait, and others do not", async () => {
  const statuses = [];
  for (const name of ["plain", "plain", "plain", "second"]) statuses.push((await openBrowser(hub).signIn(name)).status);
  expect(statuses).toEqual([200, 200, 429, 200]);
});
