import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect } from "vitest";
import { storedFile } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
const CSV = "date,value\n2026-03-01T00:00:00,1\n";
const ids = { site: 0, csv: 0, pdf: 0, invoice: 0 };
beforeAll(async () => {
  hub = await startTestHub();
  ids.site = (await createChain(hub)).siteId;
  const stored = async (content: string, query: Query) => (await hub.upload(content, query)).body as number;
  ids.csv = await stored(CSV, { Filename: "meters/day.csv", Tag: ["Dataset", "Daily"], SiteId: ids.site });
  ids.pdf = await stored("%PDF-1.7 manual", { Filename: "manual.pdf" });
  ids.invoice = await stored("%PDF-1.7 invoice", { Filename: "Invoice March.pdf", Tag: "Invoice" });
});
afterAll(() => hub.close());

const found = async (query: Query): Promise<number[]> =>
  (await hub.get("/storage", query)).map(({ id }: { id: number }) => id);

rule("file.id", async () => {
  const answer = await hub.upload("x", "one.csv");
  expect(answer).toMatchObject({ status: 200, body: expect.any(Number) });
  expect(await hub.get(`/storage/${answer.body}`)).toMatchObject({ id: answer.body, fileName: "one.csv" });
});
rule("storage.upload", async () => {
  for (const name of ["Filename", "filename", "FILENAME", "parameters.filename"]) {
    const answer = await hub.upload("x", { [name]: "a/b/two.csv", tag: "Template" });
    expect(answer).toMatchObject({ status: 200, body: expect.any(Number) });
    expect(await hub.get(`/storage/${answer.body}`)).toMatchObject({ fileName: "a/b/two.csv", tags: ["Template"] });
  }
  expect(await hub.upload("x", {})).toMatchObject({ status: 400, body: { errors: [{ path: "Filename" }] } });
});
rule("storage.list", async () => {
  expect(await found({ FileName: "meters/day.csv" })).toEqual([ids.csv]);
  expect(await found({ FileName: "DAY.csv" })).toEqual([ids.csv]);
  expect(await found({ SearchText: "march" })).toEqual([ids.invoice]);
  expect(await found({ SearchText: "dail" })).toEqual([ids.csv]);
  expect(await found({ SiteId: ids.site })).toEqual([ids.csv]);
  expect(await found({ SiteTypeId: 3 })).toEqual([ids.csv]);
  expect(await found({ SiteTypeId: 4 })).toEqual([]);
  const group = await hub.post("/groups", { name: "All", siteIds: [ids.site] });
  const empty = await hub.post("/groups", { name: "None" });
  expect(await found({ GroupId: group })).toEqual([ids.csv]);
  expect(await found({ GroupId: [empty, group], CloudItemTypeId: "Text" })).toEqual([ids.csv]);
  expect(await found({ GroupId: empty })).toEqual([]);
  expect(await found({ Tags: ["Invoice", "Daily"] })).toEqual([ids.csv, ids.invoice]);
  expect(await found({ CloudItemTypeId: "Pdf" })).toEqual([ids.pdf, ids.invoice]);
  expect(await found({ CloudItemTypeId: "pdf", Tags: "Invoice" })).toEqual([ids.invoice]);
  const page = { CloudItemTypeId: "Pdf", "Paging.PageNumber": 1, "Paging.ItemsPerPage": 1, IncludeItemsCount: true };
  const answer = await hub.call("GET", "/storage", { query: page });
  expect(answer.body).toMatchObject([{ id: ids.invoice }]);
  expect(answer.headers.get("x-total-count")).toBe("2");
});
rule("storage.one", async () => {
  const file = storedFile.parse(await hub.get(`/storage/${ids.csv}`));
  expect(file).toMatchObject({
    fileName: "meters/day.csv",
    size: CSV.length,
    sha256: createHash("sha256").update(CSV).digest("hex"),
    cloudItemTypeId: "Text",
    tags: ["Dataset", "Daily"],
    siteId: ids.site,
    createdBy: "manager",
    via: "storage",
    state: "received",
  });
});
rule("storage.content", async () => {
  const one = await hub.call("GET", "/storage/file", { query: { ids: ids.csv } });
  expect(one).toMatchObject({ status: 200, body: CSV });
  const several = await hub.call("GET", "/storage/file", { query: { ids: [ids.csv, ids.pdf] } });
  expect(several.status).toBe(200);
  expect(several.headers.get("content-type")).toBe("application/zip");
  expect(several.body).toMatch(/^PK/);
});
rule("storage.delete", async () => {
  const removed = [(await hub.upload("x", "r1.csv")).body, (await hub.upload("y", "r2.csv")).body];
  expect(await hub.ok("DELETE", "/storage", { query: { ids: removed } })).toEqual({ removed: { files: 2 } });
  for (const id of removed) expect(await hub.call("GET", `/storage/${id}`)).toMatchObject({ status: 404 });
  expect(await found({ FileName: ["r1.csv", "r2.csv"] })).toEqual([]);
});
rule("storage.unclaimed", async () => {
  const { body: id } = await hub.upload(CSV, "nobody-claims-this.csv");
  const reason = "no trigger matches the name";
  const change = { state: "unclaimed", reason, atMs: 0 } as const;
  expect(await hub.inside().store.files.advance(1, [{ id, ...change }])).toEqual([true]);
  expect(await hub.get(`/storage/${id}`)).toMatchObject({ state: "unclaimed", reason, triggerId: null, run: null });
  expect(await found({ State: "unclaimed" })).toEqual([id]);
  expect((await hub.call("GET", "/storage/file", { query: { ids: id } })).body).toBe(CSV);
  expect(await hub.ok("POST", `/storage/${id}/process`)).toMatchObject({ id, state: "received", reason: null });
});
