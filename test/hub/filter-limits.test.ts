/** Filters and the texts that they read have limits, and a long one holds up nobody else. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  hub = await startTestHub();
  chain = await createChain(hub);
});
afterAll(() => hub.close());

describe.each(["like", "~", "startswith", "endswith"])("the text for %s", (operator) => {
  test("has 500 characters at most", async () => {
    const ask = (text: string) =>
      hub.call("GET", "/sources", { query: { CustomFilter: `Name ${operator} '${text}'` } });
    expect(await ask("%a".repeat(250))).toMatchObject({ status: 200, body: [] });
    expect(await ask(`${"%a".repeat(250)}b`)).toMatchObject({
      status: 400,
      body: {
        detail: expect.stringContaining(`a text for ${operator} has 500 characters at most, and this one has 501`),
      },
    });
  });
});

describe("a text of the structure has 4,000 characters at most", () => {
  const long = "x".repeat(4_001);
  const answer = (field: string) => ({ status: 400, body: { errors: [{ path: field }] } });
  test.each(["name", "street", "city"])("of a site: %s", async (field) => {
    const body = { name: "Long", typeId: 3, timeZoneId: "Europe/Paris" };
    expect(await hub.call("POST", "/sites", { body: { ...body, [field]: long } })).toMatchObject(answer(field));
    expect(await hub.call("POST", "/sites", { body: { ...body, [field]: long.slice(1) } })).toMatchObject({
      status: 200,
    });
  });

  test.each([
    ["description", long],
    ["tags", [long]],
    ["clientData", { Free: { Main: { Text: long } } }],
  ])("of a source: %s", async (field, value) => {
    const body = { name: "Long", siteId: chain.siteId, sourceTypeId: 1, [field]: value };
    expect(await hub.call("POST", "/sources", { body })).toMatchObject(answer(field));
    const patch = [{ op: "add", path: `/${field}`, value }];
    expect(await hub.call("PATCH", `/sources/${chain.sourceId}`, { body: patch })).toMatchObject(answer(field));
  });

  test("of a variable", async () => {
    const body = { name: "Long", sourceId: chain.sourceId, variableTypeId: 0, unitId: 8, mappingConfig: long };
    expect(await hub.call("POST", "/variables", { body })).toMatchObject(answer("mappingConfig"));
  });

  test("and all values of an entity together 100,000", async () => {
    const texts = Array.from({ length: 26 }, () => "x".repeat(4_000));
    const body = { name: "Long", siteId: chain.siteId, sourceTypeId: 1, tags: texts };
    expect(await hub.call("POST", "/sources", { body })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("tags must have 100000 characters at most in all, as JSON, and not") },
    });
  });
});

describe("a filter that takes long", () => {
  const asMany = Array.from({ length: 14 }, () => `Description like '%${"_a".repeat(240)}c'`).join(" or ");
  beforeAll(async () => {
    const description = "a".repeat(4_000);
    for (let number = 0; number < 100; number += 1)
      await hub.post("/sources", { name: `Source ${number}`, siteId: chain.siteId, sourceTypeId: 1, description });
  });

  test("is answered after what others ask meanwhile", async () => {
    const order: string[] = [];
    const ask = async (name: string, query: object) => {
      const { status } = await hub.call("GET", "/sources", { query: { ...query } });
      order.push(name);
      return status;
    };
    const long = ask("long", { CustomFilter: asMany });
    const others = Array.from({ length: 5 }, () => ask("other", { Id: chain.sourceId }));
    expect(await Promise.all([long, ...others])).toEqual([200, 200, 200, 200, 200, 200]);
    expect(order).toEqual(["other", "other", "other", "other", "other", "long"]);
  });

  test("is refused beyond its time, and the next one is answered", async () => {
    const quick = await startTestHub({ limits: { filterTime: "20ms" } });
    try {
      const { siteId } = await createChain(quick);
      const description = "a".repeat(4_000);
      for (let number = 0; number < 100; number += 1)
        await quick.post("/sources", { name: `Source ${number}`, siteId, sourceTypeId: 1, description });
      const ask = (CustomFilter: string) => quick.call("GET", "/sources", { query: { CustomFilter } });
      for (let number = 0; number < 3; number += 1)
        expect(await ask(asMany)).toMatchObject({
          status: 400,
          body: { detail: expect.stringContaining("took longer than 0.02 s") },
        });
      expect((await quick.get("/sources")) as unknown[]).toHaveLength(101);
    } finally {
      await quick.close();
    }
  });
});
