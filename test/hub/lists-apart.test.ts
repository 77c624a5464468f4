/** Lists under filters that no index serves read all rows of an account: none of them does so on the main thread. */
import { expect, test } from "vitest";
import { createAlarmStore } from "#hub/store/alarms/alarms.ts";
import { createCalculationsStore } from "#hub/store/calculated/calculations.ts";
import type { Database } from "#hub/store/database.ts";
import { createFileStore } from "#hub/store/files.ts";
import { listAudit } from "#hub/store/people/audit.ts";
import { listMembers } from "#hub/store/people/members.ts";
import { pointMethods } from "#hub/store/points.ts";
import { createStructureStore } from "#hub/store/resources.ts";
import { SQLITE } from "#hub/store/sqlite/dialect.ts";

const PAGE = { offset: 0, limit: 10 };
const points = (database: Database) => pointMethods(database, { removedAtOnce: 1, breathe: async () => undefined });

const LISTS: Readonly<Record<string, (database: Database, filter: object) => Promise<unknown>>> = {
  files: (database, filter) => createFileStore(database).list(7, filter, PAGE),
  sources: (database, filter) => createStructureStore(database).sources(7, filter, PAGE),
  variables: (database, filter) => createStructureStore(database).variables(7, filter, PAGE),
  "variables of data": (database, filter) => points(database).select(7, filter),
  alarms: (database, filter) => createAlarmStore(database).list(7, [filter], PAGE),
  "changes of alarms": (database, filter) => createAlarmStore(database).changes(7, filter, PAGE),
  calculations: (database, filter) => createCalculationsStore(database).list(7, filter, PAGE),
  users: (database, filter) => listMembers(database, 7, filter, PAGE),
  "the audit trail": (database, filter) => listAudit(database, 7, filter, PAGE),
};

async function whereAsked(list: string, filter: object): Promise<readonly string[]> {
  const asked: string[] = [];
  const answer = (where: string) => {
    asked.push(where);
    return Promise.resolve({ rows: [], total: 0, map: () => [] } as never);
  };
  const ask = () => answer("main thread");
  const database = { dialect: SQLITE, ask, askApart: (accountId: number) => answer(`apart for ${accountId}`) };
  await LISTS[list]?.(database as unknown as Database, filter);
  return asked;
}

test.each([
  ["files", { text: "zzz" }],
  ["files", { names: ["zzz"] }],
  ["files", { tags: ["zzz"] }],
  ["files", { states: ["stored"] }],
  ["sources", { tags: ["zzz"] }],
  ["sources", { ids: [1], tags: ["zzz"] }],
  ["variables", { tags: ["zzz"] }],
  ["variables of data", { tags: ["zzz"] }],
  ["alarms", { severities: ["High"] }],
  ["changes of alarms", { fromMs: 1, toMs: null }],
  ["calculations", { states: ["failed"] }],
  ["users", { emails: ["zzz@example.com"] }],
  ["the audit trail", { userId: 1 }],
])("%s under %j are read apart", async (list, filter) => {
  expect(await whereAsked(list, filter)).toEqual(["apart for 7"]);
});

test.each(Object.keys(LISTS))("%s of few ids are read at once", async (list) => {
  const keys: Readonly<Record<string, object>> = { "changes of alarms": { alarmIds: [1] }, "the audit trail": {} };
  expect(await whereAsked(list, keys[list] ?? { ids: [1] })).toEqual(["main thread"]);
});
