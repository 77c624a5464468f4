/** Every field of every body, with values of other kinds: the answers are words for people who write clients. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { HubRoute } from "../../src/hub/http/route.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
  await createChain(hub);
});
afterAll(() => hub.close());

/** As the validator says it by itself. */
const PHRASES =
  /invalid (input|string|option|key|element|union)|expected .* received|too (small|big)|unrecogni|undefined|NaN|\bzod/i;
const WRONG: readonly unknown[] = ["wrong", 1.5, true, ["wrong", {}], { wrong: [null] }, "", -1];

function namesOf(schema: z.ZodType): readonly string[] {
  const shown = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const objects = [shown, ...(shown.anyOf ?? [])] as readonly { readonly properties?: object }[];
  return objects.flatMap(({ properties = {} }) => Object.keys(properties));
}

async function wordsOf(route: HubRoute): Promise<string[]> {
  const { body = z.object({}), example } = route.facts;
  const schema = body instanceof z.ZodPipe ? (body.out as z.ZodType) : body;
  const base = typeof example?.body === "object" && !Array.isArray(example.body) ? example.body : {};
  const names = namesOf(schema);
  const bodies = [
    {},
    [],
    7,
    [{}],
    [{ op: "replace" }],
    ...names.flatMap((name, at) => [0, 3].map((more) => ({ ...base, [name]: WRONG[(at + more) % WRONG.length] }))),
  ];
  const path = addressOf(route, { site: 1, source: 1, variable: 1 });
  const found: string[] = [];
  for (const body of bodies) {
    const answer = await hub.call(route.method, path, { body });
    const words = `${answer.body?.detail ?? ""} ${JSON.stringify(answer.body?.errors ?? [])}`;
    if (answer.status >= 400 && PHRASES.test(words))
      found.push(`${route.method} ${path} ${JSON.stringify(body)}: ${words}`);
  }
  return found;
}

test("no answer has a phrase of a library", async () => {
  const routes = hub.routes.filter(({ facts }) => facts.body !== undefined && facts.bodyType === undefined);
  expect(routes.length).toBeGreaterThan(20);
  const found: string[] = [];
  for (const route of routes) found.push(...(await wordsOf(route)));
  expect(found).toEqual([]);
});

test.each([
  ["/sites", {}, "name is missing; timeZoneId is missing"],
  ["/sites", { name: "S", typeId: "school", timeZoneId: "UTC" }, 'typeId must be a whole number, and not "school"'],
  ["/sources", { siteId: 1 }, "name is missing"],
  ["/sources", { name: "S" }, "siteId is missing"],
  ["/variables", { name: "V", sourceId: 1 }, "unitId is missing"],
  ["/views", { name: "V", entityType: "Site" }, "customFilter is missing"],
])("POST %s with %j says: %s", async (path, body, words) => {
  const answer = await hub.call("POST", path, { body });
  expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
});
