import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
  await createChain(hub);
});
afterAll(() => hub.close());

const NAMES = [
  "name",
  "siteId",
  "sourceId",
  "variableId",
  "VariableIds",
  "timeZoneId",
  "typeId",
  "sourceTypeId",
  "unitId",
  "tags",
  "clientData",
  "data",
  "date",
  "value",
  "version",
  "From",
  "To",
  "Granularity",
  "Aggregations",
  "DisplayLevel",
  "Paging.PageNumber",
  "Paging.ItemsPerPage",
  "PagingOrder",
  "AsOf",
  "VersionTag",
  "Id",
  "Ids",
  "operationId",
  "operationTimeoutSec",
  "webhookUrl",
];
const WORDS = [
  "",
  "0",
  "-1",
  "1e400",
  "99999999999999999999",
  "2026-13-01",
  "UTC",
  "Day",
  "\u0000",
  "\ud800",
  "%",
  "null",
  "true",
  "日本",
];
const leaf = fc.oneof(
  fc.constantFrom(...WORDS),
  fc.string(),
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);
const { value: json } = fc.letrec<{ value: unknown; object: unknown }>((tie) => ({
  value: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("value"), { maxLength: 3 }), tie("object")),
  object: fc.dictionary(fc.oneof(fc.constantFrom(...NAMES), fc.string()), tie("value"), { maxKeys: 6 }),
}));
const query = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom(...WORDS), { maxKeys: 4 });
const GETS = [
  "/sites",
  "/sources",
  "/variables",
  "/data",
  "/sources/x",
  "/variables/source/1",
  "/operations/x",
];
const POSTS = ["/sites", "/sources", "/variables", "/data", "/push/api/data", "/variables/source/1"];

test("no malformed query is answered by a server error", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...GETS), query, async (path, parameters) => {
      const { status } = await hub.call("GET", path, { query: parameters });
      expect(status === 501 || status < 500).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test("no malformed body is answered by a server error", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...POSTS),
      query,
      fc.oneof(
        json.map((body) => JSON.stringify(body)),
        fc.string(),
      ),
      async (path, parameters, raw) => {
        const { status } = await hub.call("POST", path, { query: parameters, raw });
        expect(status === 501 || status < 500).toBe(true);
      },
    ),
    { numRuns: 200 },
  );
});

test("what was pushed malformed never stops the queue", async () => {
  await hub.post("/push/api/data", [
    { variableId: 1, data: [{ date: "\ud800", value: 1 }] },
    { sourceName: "\u0000", mappingConfig: "\ud800", data: [] },
  ]);
  expect(
    await hub.push([{ variableId: 1, data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }]),
  ).toMatchObject({ stored: 1 });
});
