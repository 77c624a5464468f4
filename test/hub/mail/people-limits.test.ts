/** Mails that managers have sent to people: limits for each account, and for each of its recipients. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CallOptions, startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";

let hub: TestHub;
let outbox: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  outbox = await temporaryDirectory();
  hub = await startTestHub({ mail: { outbox: outbox.path, toPeopleAnHour: 4, toOneAnHour: 2 } });
});
afterAll(async () => {
  await hub.close();
  await outbox.remove();
});

const OTHER = { account: 2 };

async function invited(email: string, more: CallOptions = {}) {
  const answer = await hub.call("POST", "/account/invitations", { body: { email, roles: ["User"] }, ...more });
  if (answer.status === 200) await hub.call("DELETE", `/account/invitations/${answer.body.id}`, more);
  return answer;
}

const refused = (setting: string) => ({
  status: 429,
  body: { detail: expect.stringContaining(`(\`mail.${setting}\` of the hub)`) },
});

test("an address is sent so many in an hour, and an account sends so many", async () => {
  for (const email of ["one@example.org", "ONE@example.org"]) expect((await invited(email)).status).toBe(200);
  const third = await invited("One@example.org");
  expect(third).toMatchObject(refused("toOneAnHour"));
  expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(3_500);
  // Those of another account to the same address are its own.
  expect((await invited("one@example.org", OTHER)).status).toBe(200);

  const user = (name: string) => ({ body: { username: name, email: `${name}@example.org` } });
  for (const name of ["two", "three"]) expect((await hub.call("POST", "/account/users", user(name))).status).toBe(200);
  expect(await hub.call("POST", "/account/users", user("four"))).toMatchObject(refused("toPeopleAnHour"));
  expect((await hub.get("/account/users")).map(({ username }: { username: string }) => username)).not.toContain("four");
  expect(await invited("five@example.org")).toMatchObject(refused("toPeopleAnHour"));
  expect((await invited("five@example.org", OTHER)).status).toBe(200);
});
