/** Fields of bodies that no address knows (`docs/hub/interface.md`, *Clients*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, type TestHub } from "./fixture.ts";
import { startStrictHub } from "./strict-hub.ts";

let hub: TestHub;
let strict = "";
beforeAll(async () => {
  ({ hub, strict } = await startStrictHub());
});
afterAll(() => hub.close());

const SITE = { name: "S", typeId: 3, timeZoneId: "UTC" };
const TRIGGER = { name: "T", fileNamePatternMatches: [{ filterType: "Contains", value: "x" }], mapping: "m" };
const DATE = "2026-03-01T00:00:00Z";

interface Body {
  readonly method: string;
  readonly path: (ids: { readonly siteId: number; readonly sourceId: number; readonly variableId: number }) => string;
  readonly body: unknown;
  readonly field: string;
  readonly nearest: string;
}
const source = ({ sourceId }: { readonly sourceId: number }) => `/sources/${sourceId}`;
const BODIES: readonly Body[] = [
  { method: "POST", path: () => "/sites", body: { ...SITE, adress: "x", city: "y" }, field: "adress", nearest: "" },
  { method: "PUT", path: source, body: { clientDatta: {} }, field: "clientDatta", nearest: "clientData" },
  { method: "PATCH", path: source, body: { serialNumbr: null }, field: "serialNumbr", nearest: "serialNumber" },
  {
    method: "PATCH",
    path: source,
    body: [{ op: "add", path: "/Descripton", value: "x" }],
    field: "Descripton",
    nearest: "description",
  },
  {
    method: "PUT",
    path: ({ sourceId, variableId }) => `/sources/${sourceId}/variables/${variableId}`,
    body: { mappingConfg: "kWh" },
    field: "mappingConfg",
    nearest: "mappingConfig",
  },
  {
    method: "POST",
    path: () => "/form",
    body: { name: "Odd", groups: [{ name: "G", fields: [{ name: "F" }, { name: "H", timeslice: true }] }] },
    field: "groups.0.fields.1.timeslice",
    nearest: "timeSliced",
  },
  {
    method: "POST",
    path: () => "/fileTrigger",
    body: { ...TRIGGER, fileNamePatternMatches: [{ filterType: "Contains", value: "x", valeu: "y" }] },
    field: "fileNamePatternMatches.0.valeu",
    nearest: "value",
  },
  {
    method: "POST",
    path: () => "/push/api/data",
    body: [
      {
        variableId: 1,
        data: [
          { date: DATE, value: 1 },
          { date: DATE, value: 2, verison: "a" },
        ],
      },
    ],
    field: "[0].data[1].verison",
    nearest: "version",
  },
];

describe.each(BODIES)("the unknown field $field of a $method", ({ method, path, body, field, nearest }) => {
  const address = async () => {
    const { siteId, sourceId, variableIds } = await createChain(hub);
    return path({ siteId, sourceId, variableId: variableIds[0] ?? 0 });
  };

  test("is named by a warning", async () => {
    const { status, headers } = await hub.call(method, await address(), { body });
    expect([200, 204]).toContain(status);
    expect(headers.get("x-headgate-warning")).toContain(`no such field: ${field}`);
  });

  test("is refused where the client is strict, with the nearest name", async () => {
    const hint = nearest === "" ? "it takes name, typeId" : `did you mean ${nearest}?`;
    const answer = await hub.call(method, await address(), { body, authorization: strict });
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(hint) } });
    expect(answer.body.errors).toMatchObject([{ path: field }]);
  });
});

test("what was read is written back as it is, also by a strict client", async () => {
  const { siteId, sourceId, variableIds } = await createChain(hub);
  for (const path of [`/sites/${siteId}`, `/sources/${sourceId}`, `/variables/${variableIds[0]}`]) {
    const answer = await hub.call("PUT", path, { body: await hub.get(path), authorization: strict });
    expect(answer, path).toMatchObject({ status: 200 });
    expect(answer.headers.get("x-headgate-warning"), path).toBeNull();
  }
});

test("a field without a value, which libraries write for each field that they have, passes", async () => {
  const body = { ...SITE, accountId: null, isDefault: null };
  const { status, headers } = await hub.call("POST", "/sites", { body, authorization: strict });
  expect([status, headers.get("x-headgate-warning")]).toEqual([200, null]);
});

test("a strict client is refused unknown parameters, too", async () => {
  const query = { EntityTyp: 1 };
  const answer = await hub.call("POST", "/form", { query, body: { name: "Strict" }, authorization: strict });
  expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "EntityTyp" }] } });
});
