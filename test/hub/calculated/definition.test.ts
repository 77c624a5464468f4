/** The field `calculated` of a variable: what it takes, what it refuses, and what follows from it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
let place: { siteId: number; sourceId: number };
let kWh: number;
let other: number;
let form: { id: number; groupId: number; siteField: number };
const FORMULAS = "calculated.calculatedVariableFormulas";

beforeAll(async () => {
  hub = await startTestHub();
  const chain = await createChain(hub, { variables: [{ name: "Energy" }, { name: "Temperature", unitId: 28 }] });
  place = { siteId: chain.siteId, sourceId: chain.sourceId };
  [kWh = 0, other = 0] = chain.variableIds;
  const groups = [{ name: "Main", fields: [{ name: "Area", type: "Number", timeSliced: true }] }];
  const made = await hub.post("/form", { name: "Building", entityType: "Site", groups });
  const [group] = made.groups;
  form = { id: Number(made.id), groupId: Number(group.id), siteField: Number(group.fields[0].id) };
});
afterAll(() => hub.close());

const variable = (more: object) => ({ name: "Sum", sourceId: place.sourceId, variableTypeId: 0, unitId: 8, ...more });
const reading = (variableId: number, more: object = {}) => ({ alias: "a", variableId, ...more });
const of = (variables: object[], more: object = {}) => ({
  calculatedVariableFormulas: [{ formula: "= a", variables, ...more }],
});
const create = (calculated: object): Promise<number> => hub.post("/variables", variable({ calculated }));
const shown = (id: number) => hub.get(`/variables/${id}`);
const refused = async (calculated: object) => {
  const { status, body } = await hub.call("POST", "/variables", { body: variable({ calculated }) });
  return { status, detail: String(body.detail) };
};

test("every field of a definition is kept and shown, with names in any case and lists by name", async () => {
  const input = {
    ALIAS: "a",
    siteid: place.siteId,
    sourceId: place.sourceId,
    variableId: kWh,
    Granularity: "Hour",
    aggregation: "sum",
    periodType: "RelativeDate",
    period: 2,
    periodTimeBase: "Day",
    unitId: 9,
    canBeUsedAsATrigger: false,
  };
  const absolute = { fromAbsolutePeriod: "2026-01-01", toAbsolutePeriod: "2026-02-01T00:00:00Z" };
  const entity = { alias: "area", entityType: "Site", siteId: place.siteId, formId: String(form.id) };
  const id = await create({
    FriendlyName: "Total",
    CalculatedVariableFormulas: [
      {
        Formula: "a <- 1",
        validUntil: "2026-01-01",
        variables: [
          input,
          { alias: "b", variableId: kWh, periodType: 2, ...absolute },
          { alias: "c", variableId: kWh, periodType: 3, period: 10 },
        ],
        entities: [{ ...entity, groupId: form.groupId, propId: form.siteField }],
        constants: [
          { alias: "factor", value: 1.5 },
          { alias: "tariff", value: "night" },
        ],
      },
      { formula: "= x + 1", validFrom: "2026-01-01", variables: [{ alias: "x", variableId: kWh }] },
    ],
  });
  const { calculated } = await shown(id);
  const at = { siteId: place.siteId, sourceId: place.sourceId, variableId: kWh };
  const relative = { granularity: 2, aggregation: 1, periodType: 1, period: 2, periodTimeBase: 4 };
  expect(calculated).toEqual({
    friendlyName: "Total",
    calculatedVariableFormulas: [
      {
        formula: "a <- 1",
        validUntil: "2026-01-01",
        variables: [
          { alias: "a", ...at, ...relative, unitId: 9, canBeUsedAsATrigger: false },
          { alias: "b", ...at, periodType: 2, ...absolute },
          { alias: "c", ...at, periodType: 3, period: 10 },
        ],
        entities: [
          {
            alias: "area",
            entityType: 1,
            siteId: place.siteId,
            formId: form.id,
            groupId: form.groupId,
            propId: form.siteField,
          },
        ],
        constants: [
          { alias: "factor", value: 1.5 },
          { alias: "tariff", value: "night" },
        ],
      },
      { formula: "= x + 1", validFrom: "2026-01-01", variables: [{ alias: "x", ...at }] },
    ],
  });
  const list = (DisplayLevel: string) => hub.get("/variables", { Ids: [id], DisplayLevel });
  expect((await list("Verbose"))[0].calculated).toEqual(calculated);
  expect((await list("Normal"))[0]).not.toHaveProperty("calculated");
});

const one = (formula: object) => ({ calculatedVariableFormulas: [formula] });
const within = (more: object) => of([reading(1, more)]);
const period = (periodType: number, more: object) => within({ periodType, ...more });
const dated = (validFrom?: string, validUntil?: string) => ({ formula: "1", validFrom, validUntil });
test.each<[string, () => object, string]>([
  ["no formula", () => ({ calculatedVariableFormulas: [] }), "calculatedVariableFormulas"],
  ["an empty script", () => one({ formula: " " }), `${FORMULAS}.0.formula`],
  ["an empty expression", () => one({ formula: "= " }), `${FORMULAS}.0.formula`],
  ["an unreadable expression", () => of([reading(kWh)], { formula: "= a +" }), `${FORMULAS}.0.formula: column`],
  ["one behind blanks", () => of([reading(kWh)], { formula: " \n= a + nonsense(1)" }), `${FORMULAS}.0.formula: column`],
  ["an empty one behind blanks", () => one({ formula: " = " }), `${FORMULAS}.0.formula: must be an expression`],
  ["an unknown name", () => of([reading(kWh)], { formula: "= a + bb" }), "bb"],
  ["no alias", () => of([{ variableId: kWh }]), `${FORMULAS}.0.variables.0.alias`],
  ["an alias with a blank", () => of([reading(kWh, { alias: "a b" })]), `${FORMULAS}.0.variables.0.alias: must be`],
  ["a word of R", () => of([reading(kWh, { alias: "TRUE" })], { formula: "1" }), "word of R"],
  ["an alias twice", () => of([reading(kWh), reading(kWh)]), `${FORMULAS}.0.variables.1.alias: is a`],
  ["a strange variable", () => of([reading(999_999)]), "no variable 999999 in this account"],
  ["another source", () => of([reading(kWh, { sourceId: 999_999 })]), `${FORMULAS}.0.variables.0.sourceId`],
  ["another site", () => of([reading(kWh, { siteId: 999_999 })]), `${FORMULAS}.0.variables.0.siteId`],
  ["an unknown granularity", () => within({ granularity: 99, aggregation: 1 }), "GET /granularity"],
  ["an unknown aggregation", () => within({ granularity: 1, aggregation: 99 }), "GET /aggregates"],
  ["a granularity alone", () => within({ granularity: 2 }), "aggregation: is missing"],
  ["an aggregation alone", () => within({ aggregation: 1 }), "granularity: is missing"],
  ["the granularity All", () => within({ granularity: "All", aggregation: 1 }), "must not be All"],
  ["an unknown type of period", () => period(9, {}), "periodType: must be one of 1 (RelativeDate)"],
  ["a period without a type", () => within({ period: 1 }), "needs a periodType"],
  ["a relative period without a base", () => period(1, { period: 1 }), "periodTimeBase: is missing"],
  ["an unknown base", () => period(1, { period: 1, periodTimeBase: 9 }), "GET /timePeriods"],
  ["a period of 200 years", () => period(1, { period: 200, periodTimeBase: 7 }), "at most 100 years"],
  ["a base of points", () => period(3, { period: 1, periodTimeBase: 4 }), "has no meaning"],
  ["too many points", () => period(3, { period: 1_000_000 }), "at most 100000 points"],
  [
    "too many months",
    () => period(3, { period: 1_201, granularity: "Month", aggregation: "SUM" }),
    "at most 1200 with this granularity",
  ],
  ["half an absolute period", () => period(2, { fromAbsolutePeriod: "2026-01-01" }), "toAbsolutePeriod: is missing"],
  ["no date", () => period(2, { fromAbsolutePeriod: "x", toAbsolutePeriod: "2026-01-01" }), "ISO 8601"],
  [
    "an absolute period that ends first",
    () => period(2, { fromAbsolutePeriod: "2026-02-01", toAbsolutePeriod: "2026-01-01" }),
    "after fromAbsolutePeriod",
  ],
  ["an unknown unit", () => of([reading(kWh, { unitId: 9_999 })]), "GET /units"],
  ["a unit of another family", () => of([reading(kWh, { unitId: 28 })]), "another family"],
  ["neither variables nor a beginning", () => one(dated(undefined, "2026-01-01")), "0.validFrom: is missing"],
  ["a period that ends first", () => one(dated("2026-02-01", "2026-01-01")), "validUntil: must be after validFrom"],
  [
    "formulas that overlap",
    () => ({ calculatedVariableFormulas: [dated(undefined, "2026-02-01"), dated("2026-01-01")] }),
    `${FORMULAS}.1.validFrom: overlaps formula 0`,
  ],
  ["no site of an entity", () => entity({}), "siteId: is missing"],
  ["a strange site", () => entity({ siteId: 999_999 }), "no site 999999"],
  ["a strange form", () => entity({ siteId: place.siteId, formId: 999_999 }), "no form 999999"],
  ["a form of sites for a source", () => entity({ entityType: 2, sourceId: place.sourceId }), "is of Sites"],
  ["a strange group", () => entity({ siteId: place.siteId, groupId: 999_999 }), "has no group 999999"],
  ["a strange field", () => entity({ siteId: place.siteId, propId: 999_999 }), "has no field 999999"],
])("%s is refused by 400 with its place", async (_, calculated, words) => {
  const { status, detail } = await refused(calculated());
  expect(detail).toContain(words);
  expect(status).toBe(400);
});

function entity(more: object): object {
  const named = { entityType: 1, formId: form.id, groupId: form.groupId, propId: form.siteField };
  return one({ formula: "1", entities: [{ alias: "e", ...named, ...more }] });
}

test("a variable of another account is none", async () => {
  const { variableIds } = await createChain(hub, { more: { as: "second", account: 2 } });
  expect(await refused(of([reading(variableIds[0] ?? 0)]))).toMatchObject({ status: 400 });
});

test("a script of R is refused where the hub runs none, and an expression is not", async () => {
  const none = await startTestHub({ calculated: { engine: "none" } });
  try {
    const { sourceId, variableIds } = await createChain(none);
    const body = (formula: string) =>
      variable({ sourceId, calculated: of([reading(variableIds[0] ?? 0)], { formula }) });
    const script = await none.call("POST", "/variables", { body: body("a") });
    expect(script).toMatchObject({ status: 400 });
    expect(script.body.detail).toContain("calculated.engine is none");
    expect(await none.post("/variables", body("= a"))).toBeGreaterThan(0);
  } finally {
    await none.close();
  }
});

test("only managers define calculated variables", async () => {
  const body = variable({ calculated: of([reading(kWh)]) });
  for (const as of ["plain", "pusher"])
    expect(await hub.call("POST", "/variables", { body, as })).toMatchObject({ status: 403 });
});

describe("a cycle", () => {
  test("is refused with its path, through several variables", async () => {
    const first = await create(of([reading(kWh)]));
    const next = await create(of([reading(first)]));
    const last = await create(of([reading(next)]));
    const body = { calculated: of([reading(kWh), { alias: "b", variableId: last }], { formula: "= a + b" }) };
    const answer = await hub.call("PATCH", `/variables/${first}`, { body });
    expect(answer.status).toBe(409);
    expect(answer.body.detail).toContain(`${first} (Sum) reads ${last} (Sum) reads ${next} (Sum) reads ${first} (Sum)`);
    const itself = await hub.call("PATCH", `/variables/${first}`, { body: { calculated: of([reading(first)]) } });
    expect(itself.status).toBe(409);
    expect(itself.body.detail).toContain(`${first} (Sum) reads ${first} (Sum)`);
    expect((await shown(first)).calculated.calculatedVariableFormulas[0].variables[0].variableId).toBe(kWh);
  });

  test("of two changes at one moment, the later is refused", async () => {
    const pair = [await create(of([reading(kWh)])), await create(of([reading(kWh)]))];
    const answers = await Promise.all(
      pair.map((id, at) =>
        hub.call("PATCH", `/variables/${id}`, { body: { calculated: of([reading(pair[1 - at] ?? 0)]) } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });
});

describe("a definition", () => {
  test("is changed by PUT and both kinds of PATCH, and null makes the variable plain again", async () => {
    const id = await create(of([reading(kWh)]));
    const formula = async () => (await shown(id)).calculated?.calculatedVariableFormulas[0].formula;
    await hub.ok("PUT", `/variables/${id}`, { body: { ...(await shown(id)), name: "Other" } });
    expect(await formula()).toBe("= a");
    await hub.ok("PUT", `/variables/${id}`, { body: { calculated: of([reading(kWh)], { formula: "= a + 1" }) } });
    expect(await formula()).toBe("= a + 1");
    const path = "/calculated/calculatedVariableFormulas/0/formula";
    const changed = await hub.ok("PATCH", `/variables/${id}`, { body: [{ op: "replace", path, value: "= a + 2" }] });
    expect(changed.calculated.calculatedVariableFormulas[0]).toMatchObject({
      formula: "= a + 2",
      variables: [{ alias: "a", ...place, variableId: kWh }],
    });
    const named = await hub.ok("PATCH", `/variables/${id}`, { body: { calculated: { FriendlyName: "Named" } } });
    expect(named.calculated).toEqual({ ...changed.calculated, friendlyName: "Named" });
    await hub.ok("PATCH", `/variables/${id}`, { body: { calculated: null } });
    expect(await shown(id)).not.toHaveProperty("calculated");
  });

  test("comes also with a variable of a source, and reads it where it was moved", async () => {
    const chain = await createChain(hub);
    const input = chain.variableIds[0] ?? 0;
    const body = variable({ calculated: of([reading(input, { sourceId: chain.sourceId })]) });
    const { id } = await hub.post(`/variables/source/${place.sourceId}`, body);
    await hub.ok("PATCH", `/variables/${input}`, { body: { sourceId: place.sourceId } });
    const [now] = (await shown(id)).calculated.calculatedVariableFormulas[0].variables;
    expect(now).toEqual({ alias: "a", ...place, variableId: input });
    await hub.ok("PATCH", `/variables/${id}`, { body: { name: "Still" } });
  });

  test("with unknown fields is answered with their names", async () => {
    const calculated = of([reading(kWh, { granularty: 1 })]);
    const answer = await hub.call("POST", "/variables", { body: variable({ calculated }) });
    expect(`${answer.headers.get("x-headgate-warning")} ${JSON.stringify(answer.body)}`).toContain("granularty");
  });
});

test("impacted variables are those that read the input themselves", async () => {
  const { variableIds } = await createChain(hub);
  const input = variableIds[0] ?? 0;
  const direct = await create(of([reading(input)]));
  await create(of([reading(direct)]));
  const query = { "CalculatedFilter.ImpactingVariableId": input };
  expect((await hub.get("/variables", query)).map((one: { id: number }) => one.id)).toEqual([direct]);
  expect(await hub.get("/variables", { "CalculatedFilter.ImpactingVariableId": other })).toEqual([]);
});

test("an input in use is not removed before its users, and with them it is", async () => {
  const chain = await createChain(hub);
  const [input = 0] = chain.variableIds;
  const body = variable({ name: "User", sourceId: chain.sourceId, calculated: of([reading(input)]) });
  const user = await hub.post("/variables", body);
  const answer = await hub.call("DELETE", `/variables/${input}`);
  expect(answer.status).toBe(409);
  expect(answer.body.detail).toContain(`${user} (User)`);
  const outside = await create(of([reading(user)]));
  expect((await hub.call("DELETE", `/sites/${chain.siteId}`)).body.detail).toContain(`${outside} (Sum)`);
  await hub.ok("DELETE", `/variables/${outside}`);
  await hub.ok("DELETE", `/sites/${chain.siteId}`);
});

test("a form's field in use is not removed, nor its form or site", async () => {
  const { siteId } = await createChain(hub, { variables: [] });
  const fields = [{ name: "Area", type: "Number" }];
  const groups = [{ name: "Main", fields: [...fields, { name: "Note" }] }];
  const made = await hub.post("/form", { name: "Used", entityType: "Site", groups });
  const [group] = made.groups;
  const ids = { formId: made.id, groupId: group.id, propId: group.fields[0].id };
  const id = await create(one({ ...dated("2026-01-01"), entities: [{ alias: "e", entityType: 1, siteId, ...ids }] }));
  const left = { groups: [{ name: "Main", fields: [{ name: "Note" }] }] };
  const refusals = [
    await hub.call("PUT", `/form/${made.id}`, { body: left }),
    await hub.call("DELETE", `/form/${made.id}`),
    await hub.call("DELETE", `/sites/${siteId}`),
  ];
  expect(refusals.map(({ status }) => status)).toEqual([409, 409, 409]);
  for (const { body } of refusals) expect(body.detail).toContain(`${id} (Sum)`);
  await hub.ok("PUT", `/form/${made.id}`, { body: { groups: [{ name: "Main", fields }] } });
  await hub.ok("DELETE", `/variables/${id}`);
  expect(await hub.call("DELETE", `/form/${made.id}`)).toMatchObject({ status: 204 });
});

test("a push to a calculated variable is discarded with the reason", async () => {
  const id = await create(of([reading(kWh)]));
  const data = [{ date: "2026-01-01T00:00:00Z", value: 1 }];
  await hub.ok("POST", "/push/api/data", { query: { operationId: "own" }, body: [{ variableId: id, data }] });
  const { discarded } = await hub.settled("own");
  expect(discarded).toEqual([{ target: expect.any(String), count: 1, reason: expect.stringContaining("calculated") }]);
});
