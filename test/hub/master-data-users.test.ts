/** Users that a file of master data names are judged in a time that grows with their number alone. */
import { expect, test } from "vitest";
import { UserJudging } from "#hub/master-data/judge-users.ts";
import type { Wanted } from "#hub/master-data/wanted.ts";
import type { UserRecord } from "#hub/store/people/records.ts";

const MANY = 2_000;

test("each member is looked at a few times, however many the file names", () => {
  let looks = 0;
  const members = Array.from({ length: MANY }, (_, nth) => {
    const memberships = [{ accountId: 1, roles: ["User"], businessId: `b${nth}` }];
    const facts = { id: nth + 1, email: null, firstName: null, lastName: null, memberships, origin: "people" };
    return Object.defineProperty({ ...facts } as unknown as UserRecord, "username", {
      get: () => {
        looks += 1;
        return `user ${nth}`;
      },
    });
  });
  const usernames = new Map(Array.from({ length: MANY }, (_, nth) => [`user ${nth}`, nth + 1]));
  const sender = { id: 0, username: "manager", memberships: [{ accountId: 1, roles: ["Manager"], businessId: null }] };
  const judging = new UserJudging(
    { members, usernames, emails: new Map() },
    { accountId: 1, atMs: 0, sender: sender as never, most: MANY },
  );
  const row = { reasons: [], notes: [] };
  for (let nth = 0; nth < MANY; nth += 1) {
    const fields = nth % 2 === 0 ? { username: `USER ${nth}` } : { businessId: `b${nth}` };
    const wanted = { entity: "user", fields, saidIn: new Map(), rows: [row], owner: row, parent: null };
    expect(judging.judge(wanted as unknown as Wanted)).toEqual({ kind: "known", id: nth + 1, fields: [] });
  }
  expect(looks).toBeLessThan(MANY * 20);
});
