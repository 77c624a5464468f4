/** Lists come in parts: each row once, in its order, whatever comes and goes meanwhile, and no answer holds all. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "#hub/http/route.ts";
import type { Page } from "#hub/store/records.ts";
import { partsOf } from "#hub/structure/lists.ts";
import { knownNames } from "#wire/caseless.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

const ROWS = 130;

let hub: TestHub;
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  hub = await startTestHub({ limits: { requestBody: "20MB" } });
  const variables = Array.from({ length: ROWS }, (_, at) => ({ name: `Variable ${at}` }));
  chain = await createChain(hub, { variables });
  for (let at = 0; at < ROWS; at += 1) {
    await hub.post("/sites", { name: `Site ${at}`, typeId: 3, timeZoneId: "Europe/Paris" });
    await hub.post("/sources", { name: `Source ${at}`, siteId: chain.siteId, sourceTypeId: 1 });
    await hub.post("/groups", { name: `Group ${at}` });
    await hub.post("/form", { name: `Form ${at}`, entityType: "Source", displayOrder: at % 7, groups: [] });
    await hub.call("PUT", `/account/users/1/claims/claim-${at}`, { body: { claimValue: "1" } });
    await hub.upload("content", { Filename: `file-${at}.txt` });
  }
});
afterAll(() => hub.close());

const LISTS = ["/sites", "/sources", "/variables", "/groups", "/form", "/storage", "/account/audit"];

describe.each(LISTS)("%s", (path) => {
  const list = async (query: object) => (await hub.get(path, { ...query })) as { id: number | string }[];

  test("has each row once, in the order of its pages", async () => {
    const all = await list({});
    expect(all.length).toBeGreaterThanOrEqual(ROWS);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    const pages: unknown[] = [];
    for (let number = 0; pages.length < all.length; number += 1)
      pages.push(...(await list({ "Paging.PageNumber": number, "Paging.ItemsPerPage": 40 })));
    expect(all).toEqual(pages);
  });

  test("has pages of more rows than a part, and the number of all", async () => {
    const all = await list({});
    const query = { "Paging.PageNumber": 1, "Paging.ItemsPerPage": 61, IncludeItemsCount: true };
    const answer = await hub.call("GET", path, { query });
    expect(answer.body).toEqual(all.slice(61, 122));
    expect(answer.headers.get("x-total-count")).toBe(String(all.length));
    const whole = await hub.call("GET", path, { query: { IncludeItemsCount: true } });
    expect(whole.body).toEqual(all);
    expect(whole.headers.get("x-total-count")).toBe(String(all.length));
  });
});

test("no list asks its store for all rows at once", async () => {
  const limits: (number | null)[] = [];
  const { store } = hub.inside();
  const restore: (() => void)[] = [];
  const record = (holder: object): void => {
    for (const [name, value] of Object.entries(holder)) {
      if (typeof value === "object" && value !== null) record(value);
      if (typeof value !== "function") continue;
      restore.push(() => Reflect.set(holder, name, value));
      Reflect.set(holder, name, (...given: unknown[]) => {
        for (const one of given)
          if (typeof one === "object" && one !== null && "offset" in one) limits.push((one as Page).limit);
        return Reflect.apply(value, holder, given);
      });
    }
  };
  record(store);
  const asked: string[] = [];
  try {
    for (const route of hub.routes.filter(isList)) {
      const before = limits.length;
      const url = addressOf(route, { id: 1, sourceId: chain.sourceId });
      const { status } = await hub.call("GET", url);
      if (status === 200 && limits.length > before) asked.push(route.url);
    }
  } finally {
    for (const undo of restore) undo();
  }
  expect(asked).toEqual(expect.arrayContaining(LISTS));
  expect(asked.length).toBeGreaterThanOrEqual(18);
  // Reports of quality list variables first, and read these a few at a time.
  const most = 10_000;
  expect(limits.filter((limit) => limit === null || limit > most)).toEqual([]);
});

function isList({ method, facts: { query, answer } }: HubRoute): boolean {
  const isPaged = query !== undefined && knownNames(query).some((name) => /ItemsPerPage$/.test(name));
  return method === "GET" && isPaged && answer instanceof z.ZodArray;
}

test("long rows come in several parts", async () => {
  const texts = { description: "d".repeat(4_000), tags: Array.from({ length: 24 }, () => "t".repeat(4_000)) };
  for (let at = 0; at < 30; at += 1)
    await hub.post("/sources", { name: `Long ${at}`, siteId: chain.siteId, sourceTypeId: 1, ...texts });
  const answer = await hub.call("GET", "/sources");
  expect(answer.headers.get("content-length")).toBe(null);
  expect(answer.body.slice(-30)).toMatchObject(Array.from({ length: 30 }, (_, at) => ({ name: `Long ${at}` })));
});

test("rows that come or go between two parts neither hide nor repeat others", async () => {
  let ids = Array.from({ length: 10 }, (_, at) => at + 1);
  const rows = async ({ offset, limit, after = 0 }: Page) => {
    const found = ids.filter((id) => id > after).slice(offset, offset + (limit ?? ids.length));
    return { rows: found.map((id) => ({ id })), total: ids.length };
  };
  const seen: number[][] = [];
  for await (const part of partsOf(rows, { offset: 0, limit: null }, { keyOf: ({ id }) => id, size: () => 10 })) {
    seen.push(part.map(({ id }) => id));
    ids = [...ids.filter((id) => id > 3), ...(seen.length === 1 ? [11, 12] : [])];
  }
  expect(seen).toEqual([
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    [11, 12],
  ]);
});
