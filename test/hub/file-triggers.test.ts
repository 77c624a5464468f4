import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Mapping, WARNING_HEADER } from "#wire/index.ts";
import { type Query, startTestHub, type TestHub } from "./fixture.ts";

const SETTINGS = z.strictObject({ timeZone: z.string(), divider: z.number().default(1) });
const MAPPERS: readonly Mapping[] = [
  { name: "free", version: "1.0.0", summary: "Takes any settings", settingsSchema: null },
  {
    name: "strict",
    version: "2.1.0",
    summary: "Has a schema",
    settingsSchema: z.toJSONSchema(SETTINGS, { io: "input" }),
  },
  {
    name: "odd",
    version: "1.0.0",
    summary: "Has a schema that the hub cannot read",
    settingsSchema: { not: { type: "string" } },
  },
];

let mappers = MAPPERS;
let hub: TestHub;
beforeAll(async () => {
  // The second account has no mappers.
  hub = await startTestHub({}, true, { mappersOf: async (account) => (account === 1 ? mappers : []) });
});
afterAll(() => hub.close());

const SECOND = { as: "second", account: 2 };
const CSV = { filterType: "EndsWith", value: ".csv" };
const body = (more: object = {}) => ({
  ingestionType: "UploadInStorage",
  fileNamePatternMatches: [CSV],
  mapping: "free",
  ...more,
});
const create = (more: object = {}, call: object = {}): Promise<number> => hub.post("/fileTrigger", body(more), call);
const update = (id: number, fields: object, call: object = {}) =>
  hub.call("PUT", "/fileTrigger", { ...call, body: { id, ...fields } });
const remove = (ids: number | readonly number[], call: object = {}) =>
  hub.call("DELETE", "/fileTrigger", { ...call, query: { ids } });
const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);

describe("a body", () => {
  test("without the optional fields gets the defaults, and a token", async () => {
    const id = await hub.post("/fileTrigger", { mapping: "free", fileNamePatternMatches: [CSV], colour: "red" });
    expect(await hub.get(`/fileTrigger/${id}`)).toEqual({
      id,
      name: null,
      fileType: "CustomFormat",
      ingestionType: "SendViaFtp",
      triggerType: "Added",
      fileNamePatternMatches: [CSV],
      fileTriggerCombination: "And",
      state: "Active",
      token: expect.stringMatching(/^[0-9a-f-]{36}$/),
      mapping: "free",
      mappingKnown: true,
      metadata: {},
      creationDate: expect.stringMatching(/Z$/),
      createdBy: "manager",
      lastEditDate: expect.stringMatching(/Z$/),
      editedBy: "manager",
    });
  });

  test("with an unknown field is taken, and a warning names the field", async () => {
    const made = await hub.call("POST", "/fileTrigger", { body: body({ colour: "red" }) });
    expect(made.headers.get(WARNING_HEADER)).toMatch(/no such field: colour$/);
    const changed = await update(made.body, { stat: "Inactive" });
    expect(changed.headers.get(WARNING_HEADER)).toMatch(/no such field: stat$/);
    // As it was read.
    const again = await update(made.body, await hub.get(`/fileTrigger/${made.body}`));
    expect(again).toMatchObject({ status: 200 });
    expect(again.headers.get(WARNING_HEADER)).toBeNull();
  });

  test("is read without regard to case in names and in listed values", async () => {
    const id = await hub.post("/fileTrigger", {
      FILENAMEPATTERNMATCHES: [{ FILTERTYPE: "notcontains", VALUE: "Draft" }],
      ingestiontype: "uploadinstorage",
      filetriggercombination: "or",
      FileType: "opisenseSTANDARD",
    });
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({
      fileNamePatternMatches: [{ filterType: "NotContains", value: "Draft" }],
      ingestionType: "UploadInStorage",
      fileTriggerCombination: "Or",
      fileType: "OpisenseStandard",
      mapping: "standard",
      mappingKnown: false,
    });
  });

  const long = (length: number) => "x".repeat(length);
  test.each([
    [{ fileNamePatternMatches: [] }, "fileNamePatternMatches", "claims no file"],
    [{ fileNamePatternMatches: undefined }, "fileNamePatternMatches", "claims no file"],
    [{ fileNamePatternMatches: [{ filterType: "EndsWith", value: "" }] }, "fileNamePatternMatches.0.value", ""],
    [{ fileNamePatternMatches: [{ ...CSV, value: long(256) }] }, "fileNamePatternMatches.0.value", "255"],
    [{ fileNamePatternMatches: [{ filterType: "Like", value: "x" }] }, "fileNamePatternMatches.0.filterType", "Equals"],
    [{ fileNamePatternMatches: Array(51).fill(CSV) }, "fileNamePatternMatches", "50"],
    [
      { fileNamePatternMatches: [CSV, { filterType: "Equals", value: "a/b.csv" }] },
      "fileNamePatternMatches.1.value",
      "can never hold",
    ],
    [
      { fileNamePatternMatches: [{ filterType: "NotStartsWith", value: "a/" }] },
      "fileNamePatternMatches.0.value",
      "holds for every file",
    ],
    [{ fileTriggerCombination: "Xor" }, "fileTriggerCombination", "And"],
    [{ fileType: "Csv" }, "fileType", "IndexIs"],
    [{ ingestionType: "ByPost" }, "ingestionType", "SendViaHttp"],
    [{ triggerType: "Removed" }, "triggerType", "Added"],
    [{ state: "Deleted" }, "state", "Active or Inactive"],
    [{ state: "Asleep" }, "state", "Active"],
    [{ token: "not-a-guid" }, "token", ""],
    [{ name: long(201) }, "name", "200"],
    [{ mapping: undefined }, "mapping", "/fileTrigger/mappings"],
    [{ metadata: ["timeZone"] }, "metadata", ""],
    [{ metadata: { text: long(65_536) } }, "metadata", "65536"],
    [{ mapping: "strict", metadata: { timeZone: 7 } }, "metadata", "timeZone"],
    [{ mapping: "strict", metadata: { timeZone: "UTC", extra: 1 } }, "metadata", "extra"],
    [{ mapping: "strict" }, "metadata", "strict"],
  ])("%# with a fault is refused, and the response names the field", async (more, path, words) => {
    const before = await hub.get("/fileTrigger/count");
    const answer = await hub.call("POST", "/fileTrigger", { body: body(more) });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path }] } });
    expect(answer.body.detail).toContain(words);
    expect(await hub.get("/fileTrigger/count")).toBe(before);
  });

  test("needs no pattern for files that the token decides about", async () => {
    const id = await create({ ingestionType: "SendViaHttp", fileNamePatternMatches: undefined });
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ fileNamePatternMatches: [] });
    const answer = await update(id, { ingestionType: "SendViaFtp" });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "fileNamePatternMatches" }] } });
  });

  test("in state Updated, as another service shows a changed trigger, is taken as Active", async () => {
    expect(await hub.get(`/fileTrigger/${await create({ state: "Updated" })}`)).toMatchObject({ state: "Active" });
  });
});

describe("the mapper of a trigger", () => {
  test("is one of the account's mappings, with settings that fit its schema", async () => {
    const mappings = await hub.get("/fileTrigger/mappings");
    expect(mappings).toEqual(MAPPERS);
    expect(await hub.get("/fileTrigger/mappings", undefined, SECOND)).toEqual([]);
    const id = await create({ mapping: "strict", metadata: { timeZone: "UTC" } });
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ mappingKnown: true, metadata: { timeZone: "UTC" } });
    expect(await update(id, { metadata: { timeZone: null } })).toMatchObject({ status: 400 });
    const odd = { mapping: "odd", metadata: { any: true } };
    expect(await hub.get(`/fileTrigger/${await create(odd)}`)).toMatchObject({ ...odd, mappingKnown: true });
  });

  test("may be unknown, and shows as such", async () => {
    const answer = await hub.call("POST", "/fileTrigger", { body: body({ mapping: "later", metadata: { any: 1 } }) });
    expect(answer.status).toBe(200);
    expect(answer.headers.get(WARNING_HEADER)).toContain("no mapper later");
    expect(await hub.get(`/fileTrigger/${answer.body}`)).toMatchObject({ mapping: "later", mappingKnown: false });
    const known = await update(answer.body, { mapping: "free" });
    expect(known).toMatchObject({ status: 200, body: { mappingKnown: true } });
    expect(known.headers.get(WARNING_HEADER)).toBeNull();
  });

  test("that changed its schema keeps no trigger from being switched off", async () => {
    const id = await create({ mapping: "later" });
    mappers = [...MAPPERS, { ...(MAPPERS[1] as Mapping), name: "later" }];
    const answer = await update(id, { state: "Inactive" });
    mappers = MAPPERS;
    expect(answer).toMatchObject({ status: 200, body: { state: "Inactive" } });
  });
});

describe("a token", () => {
  const TOKEN = "0f9a7c9e-6c2b-4a9e-8a41-90c1ad1d2f3b";
  const NEXT = "1f9a7c9e-6c2b-4a9e-8a41-90c1ad1d2f3b";

  test("is of one trigger over all accounts, and a clash discloses no more than that", async () => {
    const id = await create({ token: TOKEN.toUpperCase() });
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ token: TOKEN });
    const clashes = [
      await hub.call("POST", "/fileTrigger", { body: body({ token: TOKEN }) }),
      await hub.call("POST", "/fileTrigger", { ...SECOND, body: body({ token: TOKEN }) }),
      await update(await create({}, SECOND), { token: TOKEN }, SECOND),
    ];
    for (const clash of clashes)
      expect(clash).toMatchObject({ status: 409, body: { code: "conflict", errors: [{ path: "token" }] } });
    expect(new Set(clashes.map(({ body: { detail } }) => detail)).size).toBe(1);
    expect(clashes[0]?.body.detail).not.toContain(TOKEN);
  });

  test("that was replaced or deleted stays taken, and its trigger may have it back", async () => {
    const [listed] = (await hub.get("/fileTrigger")).filter((row: { token: string }) => row.token === TOKEN);
    expect(await update(listed.id, { token: NEXT })).toMatchObject({ status: 200, body: { token: NEXT } });
    const again = (token: string) => hub.call("POST", "/fileTrigger", { ...SECOND, body: body({ token }) });
    expect(await again(TOKEN)).toMatchObject({ status: 409 });
    expect(await update(listed.id, { token: TOKEN })).toMatchObject({ status: 200, body: { token: TOKEN } });
    await remove(listed.id);
    for (const token of [TOKEN, NEXT]) expect(await again(token)).toMatchObject({ status: 409 });
  });

  test("of several requests at once goes to one of them", async () => {
    const token = await hub.get("/fileTrigger/generateToken");
    const before = await hub.get("/fileTrigger/count");
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => hub.call("POST", "/fileTrigger", { body: body({ token }) })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
    expect(await hub.get("/fileTrigger/count")).toBe(before + 1);
  });
});

describe("states", () => {
  test("select the list and the count, pages come in order of ids", async () => {
    const own = { as: "admin", account: 2 };
    const before = await hub.get("/fileTrigger/count", undefined, own);
    const ids = [await create({}, own), await create({ state: "Inactive" }, own), await create({}, own)];
    const [first = 0, second = 0, third = 0] = ids;
    await remove(third, own);
    const list = async (query: Query) => idsOf(await hub.get("/fileTrigger", query, own));
    expect(await list({})).toEqual(expect.arrayContaining([first, second]));
    expect(await list({})).not.toContain(third);
    expect(await list({ state: "inactive" })).toEqual([second]);
    expect(await list({ State: "Deleted" })).toEqual([third]);
    expect(await list({ State: ["Deleted", "Inactive"], IngestionType: "UploadInStorage" })).toEqual([second, third]);
    expect(await list({ State: ["Deleted", "Inactive"], IngestionType: "SendViaFtp" })).toEqual([]);
    expect(await hub.get("/fileTrigger/count", undefined, own)).toBe(before + 2);
    expect(await hub.get("/fileTrigger/count", { State: "Deleted" }, own)).toBe(1);
    const paged = await hub.call("GET", "/fileTrigger", {
      ...own,
      query: { ItemsPerPage: 1, Page: before, IncludeItemsCount: true },
    });
    expect(paged.body).toMatchObject([{ id: first }]);
    expect(paged.headers.get("x-total-count")).toBe(String(before + 2));
    expect(await list({ "Paging.ItemsPerPage": 1, "Paging.PageNumber": before + 1 })).toEqual([second]);
    expect(await list({ State: "Updated" })).not.toContain(first);
    await update(first, { name: "changed" }, own);
    expect(await list({ State: "Updated" })).toContain(first);
    expect(await list({})).toContain(first);
  });

  test("leave a trigger that fires Updated, and it fires on; a repetition changes nothing", async () => {
    const id = await create({ name: "Once" });
    const stateAfter = async (change: object) => ((await update(id, change)).body as { state: string }).state;
    expect(await stateAfter({ state: "Active" })).toBe("Active");
    expect(await stateAfter({ name: "Twice" })).toBe("Updated");
    expect(await stateAfter({ name: "Twice", state: "Active" })).toBe("Updated");
    expect(await stateAfter({ name: "Thrice", state: "Inactive" })).toBe("Inactive");
    expect(await stateAfter({ name: "Again" })).toBe("Inactive");
    expect(await stateAfter({ name: "At last", state: "Active" })).toBe("Active");
  });

  test("of removed triggers are for good, and nothing is removed when one does not exist", async () => {
    const [first, second] = [await create(), await create()];
    expect(await remove([first, 999_999])).toMatchObject({ status: 400, body: { errors: [{ path: "ids" }] } });
    expect(await hub.call("DELETE", "/fileTrigger")).toMatchObject({
      status: 400,
      body: { errors: [{ path: "ids" }] },
    });
    expect(await hub.get(`/fileTrigger/${first}`)).toMatchObject({ state: "Active" });
    expect(await remove([first, first])).toMatchObject({ status: 200, body: { removed: { fileTriggers: 1 } } });
    expect(await remove(first)).toMatchObject({ status: 200, body: { removed: { fileTriggers: 0 } } });
    expect(await remove(first)).toMatchObject({ status: 200 });
    expect(await update(first, { state: "Active" })).toMatchObject({ status: 409, body: { code: "conflict" } });
    expect(await update(second, { state: "Deleted" })).toMatchObject({ status: 200, body: { state: "Deleted" } });
    expect(await update(999_999, { state: "Active" })).toMatchObject({ status: 404 });
    expect(await update(Number.NaN, {})).toMatchObject({ status: 400, body: { errors: [{ path: "id" }] } });
  });

  test("stay when a removal has an unknown parameter", async () => {
    const id = await create();
    const answer = await hub.call("DELETE", "/fileTrigger", { query: { ids: id, WhatIf: true } });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("no parameter WhatIf; it takes ids; nothing was removed") },
    });
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ state: "Active" });
  });

  test("and other changes are in the history, with who, when, before and after", async () => {
    const id = await create({ name: "First" });
    await update(id, { name: "Second" }, { as: "admin" });
    await update(id, { name: "Second" });
    await update(id, { state: "Inactive" });
    expect(await update(id, { fileNamePatternMatches: [] })).toMatchObject({ status: 400 });
    await remove(id);
    await hub.restart();
    const history = await hub.get(`/fileTrigger/${id}/history`);
    expect(history).toMatchObject([
      { state: "Deleted", by: "manager", before: { state: "Inactive" }, after: { state: "Deleted" } },
      { state: "Inactive", by: "manager", before: { state: "Updated" }, after: { state: "Inactive" } },
      { state: "Updated", by: "admin", before: { name: "First" }, after: { name: "Second", state: "Updated" } },
      { state: "Active", by: "manager", before: null, after: { name: "First", fileNamePatternMatches: [CSV] } },
    ]);
    expect(history[0].date).toBe((await hub.get(`/fileTrigger/${id}`)).lastEditDate);
    expect(idsOf(await hub.get(`/fileTrigger/${id}/history`, { ItemsPerPage: 1, Page: 1 }))).toEqual([history[1].id]);
  });

  test("two changes of one trigger at once are both kept", async () => {
    const id = await create({ name: "Both" });
    await Promise.all([update(id, { state: "Inactive" }), update(id, { fileTriggerCombination: "Or" })]);
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ state: "Inactive", fileTriggerCombination: "Or" });
    expect(await hub.get(`/fileTrigger/${id}/history`)).toHaveLength(3);
  });
});

describe("the test of a name", () => {
  const own = { as: "admin", account: 2 };
  const tested = async (query: Query, ids: readonly number[]) => {
    const answer = await hub.ok("POST", "/fileTrigger/test", { ...own, query });
    return { ...answer, triggers: answer.triggers.filter(({ id }: { id: number }) => ids.includes(id)) };
  };

  test("names the trigger that would claim it, and each condition of the others", async () => {
    const starts = { filterType: "StartsWith", value: "wind_" };
    const suffix = { filterType: "EndsWith", value: ".dat" };
    const patterns = { fileNamePatternMatches: [starts, suffix] };
    const ids = [
      await create({ ...patterns, state: "Inactive" }, own),
      await create({ ...patterns, ingestionType: "SendViaFtp" }, own),
      await create({ fileNamePatternMatches: [starts, CSV], name: "Wind" }, own),
      await create(patterns, own),
      await create({ ...patterns, fileTriggerCombination: "Or" }, own),
      await create(patterns, own),
    ];
    await remove(ids[5] ?? 0, own);
    const answer = await tested({ filename: "wind_1.dat" }, ids);
    expect(answer).toMatchObject({
      fileName: "wind_1.dat",
      ingestionType: "UploadInStorage",
      claimedBy: ids[3],
      triggers: [
        { id: ids[0], matches: false, reason: expect.stringContaining("Inactive") },
        { id: ids[1], matches: false, reason: expect.stringContaining("SendViaFtp") },
        {
          id: ids[2],
          name: "Wind",
          matches: false,
          patterns: [
            { ...starts, holds: true },
            { ...CSV, holds: false },
          ],
          reason: 'StartsWith "wind_": yes; EndsWith ".csv": no (all must hold)',
        },
        { id: ids[3], matches: true },
        { id: ids[4], matches: true, reason: expect.stringContaining(`the trigger ${ids[3]}`) },
      ],
    });
    expect(answer.triggers).toHaveLength(5);
    expect((await tested({ Filename: "WIND_1.DAT" }, ids)).claimedBy).toBeNull();
    expect((await tested({ Filename: "wind_1.dat", IngestionType: "SendViaFtp" }, ids)).claimedBy).toBe(ids[1]);
  });

  test("is matched without its folders", async () => {
    const patterns = { fileNamePatternMatches: [{ filterType: "StartsWith", value: "hydro_" }] };
    const id = await create(patterns, own);
    expect(await tested({ Filename: "plant/7/hydro_1.hyd" }, [id])).toMatchObject({ claimedBy: id });
    expect(await tested({ Filename: "hydro_1/x.hyd" }, [id])).toMatchObject({ triggers: [{ matches: false }] });
  });

  test("of a container judges its entries, each by its own name", async () => {
    const patterns = { fileNamePatternMatches: [{ filterType: "Contains", value: "solar_" }] };
    const id = await create(patterns, own);
    const none = { claimedBy: null, triggers: [] };
    const zip = await tested({ Filename: "solar_1.zip" }, [id]);
    expect(zip).toMatchObject({ ...none, container: { entries: [], reason: expect.stringContaining("Entry=") } });
    const Entry = ["2026/solar_1.sol", "notes.sol", "solar_2.zip"];
    const { body } = await hub.call("POST", "/fileTrigger/test", { ...own, query: { Filename: "x.ZIP", Entry } });
    expect(body).toMatchObject({
      ...none,
      container: {
        entries: [
          { fileName: "2026/solar_1.sol", claimedBy: id, refused: null },
          { fileName: "notes.sol", claimedBy: null, refused: null },
          { fileName: "solar_2.zip", ...none, refused: expect.stringContaining("within another") },
        ],
      },
    });
    const entries = [{ fileName: "solar_1.sol", claimedBy: id }];
    expect(await tested({ Filename: "in/solar_1.sol.gz" }, [id])).toMatchObject({ ...none, container: { entries } });
    expect(await tested({ Filename: "solar_1.sol" }, [id])).toMatchObject({ claimedBy: id, container: null });
    for (const Filename of ["solar_1.sol", "solar_1.sol.gz"])
      expect(await hub.call("POST", "/fileTrigger/test", { ...own, query: { Filename, Entry } })).toMatchObject({
        status: 400,
        body: { errors: [{ path: "Entry" }] },
      });
  });

  test("goes by the token where files are pushed", async () => {
    const id = await create({ ingestionType: "SendViaHttp", fileNamePatternMatches: undefined }, own);
    const { token } = await hub.get(`/fileTrigger/${id}`, undefined, own);
    const query = { Filename: "any", IngestionType: "SendViaHttp" };
    expect(await tested({ ...query, Token: token.toUpperCase() }, [id])).toMatchObject({ claimedBy: id });
    const other = await hub.get("/fileTrigger/generateToken");
    expect(await tested({ ...query, Token: other }, [id])).toMatchObject({
      claimedBy: null,
      triggers: [{ reason: "its token is another" }],
    });
    for (const wrong of [query, { Filename: "any", Token: token }])
      expect(await hub.call("POST", "/fileTrigger/test", { query: wrong })).toMatchObject({
        status: 400,
        body: { errors: [{ path: "Token" }] },
      });
  });
});

test("readers read, and only managers change", async () => {
  const id = await create();
  const plain = { as: "plain" };
  expect(await hub.get(`/fileTrigger/${id}`, undefined, plain)).toMatchObject({ id });
  expect(await hub.call("POST", "/fileTrigger/test", { ...plain, query: { Filename: "a.csv" } })).toMatchObject({
    status: 200,
  });
  for (const answer of [
    await hub.call("POST", "/fileTrigger", { ...plain, body: body() }),
    await update(id, { state: "Inactive" }, plain),
    await remove(id, plain),
  ])
    expect(answer).toMatchObject({ status: 403, body: { code: "missing-right" } });
});

test("triggers of other accounts do not exist", async () => {
  const id = await create();
  expect(idsOf(await hub.get("/fileTrigger", undefined, SECOND))).not.toContain(id);
  for (const path of [`/fileTrigger/${id}`, `/fileTrigger/${id}/history`])
    expect(await hub.call("GET", path, SECOND)).toMatchObject({ status: 404 });
  expect(await update(id, { state: "Inactive" }, SECOND)).toMatchObject({ status: 404 });
  expect(await remove(id, SECOND)).toMatchObject({ status: 400 });
  expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ state: "Active" });
});
