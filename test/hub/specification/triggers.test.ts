import { afterAll, beforeAll, expect } from "vitest";
import { shownFileTrigger } from "#wire/index.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const SENT = {
  Name: "ACME",
  FileType: "CustomFormat",
  IngestionType: "SendViaFtp",
  TriggerType: "Added",
  FileNamePatternMatches: [
    { FilterType: "StartsWith", Value: "acme_" },
    { FilterType: "NotEndsWith", Value: ".tmp" },
  ],
  FileTriggerCombination: "And",
  State: "Inactive",
  Mapping: "acme",
  Metadata: { timeZone: "Europe/Paris", Columns: ["A", null] },
};

rule("trigger.fields", async () => {
  const token = await hub.get("/fileTrigger/generateToken");
  const id = await hub.post("/fileTrigger", { ...SENT, Token: token });
  const shown = shownFileTrigger.parse(await hub.get(`/fileTrigger/${id}`));
  expect(shown).toMatchObject({
    id,
    fileType: "CustomFormat",
    ingestionType: "SendViaFtp",
    triggerType: "Added",
    fileNamePatternMatches: [
      { filterType: "StartsWith", value: "acme_" },
      { filterType: "NotEndsWith", value: ".tmp" },
    ],
    fileTriggerCombination: "And",
    state: "Inactive",
    token,
    metadata: { timeZone: "Europe/Paris", Columns: ["A", null] },
    createdBy: "manager",
    editedBy: "manager",
  });
  expect(shown.lastEditDate).toBe(shown.creationDate);
  await hub.ok("PUT", "/fileTrigger", { as: "admin", body: { Id: id, State: "Active" } });
  const edited = shownFileTrigger.parse(await hub.get(`/fileTrigger/${id}`));
  expect(edited).toMatchObject({ createdBy: "manager", editedBy: "admin", creationDate: shown.creationDate });
  const [change] = await hub.get(`/fileTrigger/${id}/history`);
  expect(change).toMatchObject({ date: edited.lastEditDate, by: "admin", before: { state: "Inactive" } });
});

rule("trigger.filter-types", async () => {
  const types = await hub.get("/fileTrigger/filterTypes");
  const positive = ["Contains", "StartsWith", "EndsWith", "Equals"];
  expect(types).toEqual([...positive, ...positive.map((type) => `Not${type}`)]);
  // What holds for these names, in the order of the types.
  const names = { ab: "1111 0000", xab: "1010 0101", abx: "1100 0011", AB: "0000 1111" };
  const second = { as: "second", account: 2 };
  for (const filterType of types) {
    const patterns = [{ filterType, value: "ab" }];
    const body = { ingestionType: "UploadInStorage", mapping: "acme", fileNamePatternMatches: patterns };
    await hub.post("/fileTrigger", body, second);
  }
  for (const [Filename, expected] of Object.entries(names)) {
    const { triggers } = await hub.ok("POST", "/fileTrigger/test", { ...second, query: { Filename } });
    const bits = triggers.map(({ matches }: { matches: boolean }) => (matches ? "1" : "0")).join("");
    expect(bits, Filename).toBe(expected.replace(" ", ""));
  }
});

rule("triggers.read", async () => {
  const ids = [await hub.post("/fileTrigger", SENT), await hub.post("/fileTrigger", SENT)];
  const listed = await hub.get("/fileTrigger", { ItemsPerPage: 1_000 });
  expect(listed.map((row: { id: number }) => row.id)).toEqual(expect.arrayContaining(ids));
  expect(await hub.get("/fileTrigger", { ItemsPerPage: 1 })).toEqual([listed[0]]);
  expect(await hub.get(`/fileTrigger/${ids[0]}`)).toEqual(listed.find((row: { id: number }) => row.id === ids[0]));
  expect(await hub.get("/fileTrigger/count")).toBe(listed.length);
  const value = (path: string) => hub.get(`/fileTrigger/${path}`);
  expect(await value("fileTypes")).toEqual([
    "OpisenseStandard",
    "OpisenseMasterData",
    "CustomFormat",
    "OpisenseManualLoad",
    "IndexIs",
  ]);
  expect(await value("ingestionTypes")).toEqual(["SendViaFtp", "UploadInStorage", "SendViaHttp"]);
  expect(await value("triggerTypes")).toEqual(["Added"]);
  expect(await value("triggerCombinations")).toEqual(["And", "Or"]);
  expect(await value("mappings")).toEqual([]);
});

rule("triggers.token", async () => {
  const answer = await hub.call("GET", "/fileTrigger/generateToken");
  expect(answer).toMatchObject({ status: 200, body: expect.stringMatching(GUID) });
  expect(await hub.get("/fileTrigger/generateToken")).not.toBe(answer.body);
});

rule("triggers.change", async () => {
  const [first, second] = [await hub.post("/fileTrigger", SENT), await hub.post("/fileTrigger", SENT)];
  const answer = await hub.ok("PUT", "/fileTrigger", { body: { id: first, name: "Other", metadata: {} } });
  expect(answer).toMatchObject({ id: first, name: "Other", metadata: {}, mapping: "acme", state: "Inactive" });
  expect(await hub.get(`/fileTrigger/${first}`)).toEqual(answer);
  await hub.ok("DELETE", "/fileTrigger", { query: { ids: [first, second] } });
  const listed = await hub.get("/fileTrigger");
  for (const id of [first, second]) {
    expect(listed.map((row: { id: number }) => row.id)).not.toContain(id);
    expect(await hub.get(`/fileTrigger/${id}`)).toMatchObject({ state: "Deleted" });
  }
});

const pushed = async (content: string) => {
  const token = await hub.get("/fileTrigger/generateToken");
  const id = await hub.post("/fileTrigger", { IngestionType: "SendViaHttp", Mapping: "acme", Token: token });
  const headers = { "content-type": "text/plain" };
  const answer = await hub.call("POST", `/push/api/generic/${token}`, { headers, raw: content });
  return { trigger: { id, token }, answer };
};

rule("trigger.token", async () => {
  const { trigger, answer } = await pushed("a;b");
  expect(answer).toMatchObject({ status: 200, body: { triggerId: trigger.id } });
  expect(await hub.get(`/storage/${answer.body.id}`)).toMatchObject({ triggerId: trigger.id, via: "generic" });
  const other = await hub.get("/fileTrigger/generateToken");
  expect(await hub.call("POST", `/push/api/generic/${other}`, { raw: "a;b" })).toMatchObject({ status: 404 });
});

rule("push.generic", async () => {
  const content = "; not JSON\r\n1;2";
  const { answer } = await pushed(content);
  const authorization = `Bearer ${await hub.token()}`;
  const response = await fetch(`${hub.url()}/storage/file?ids=${answer.body.id}`, { headers: { authorization } });
  expect(await response.text()).toBe(content);
});
