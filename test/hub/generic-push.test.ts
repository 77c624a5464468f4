/** The custom push route: files in the sender's own format, each for the trigger whose token is in the address. */
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WARNING_HEADER } from "#wire/index.ts";
import { type CallOptions, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
let trigger: { id: number; token: string };
beforeAll(async () => {
  hub = await startTestHub({
    limits: { file: "100KB" },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "1KB" } },
    ],
  });
  trigger = await create({ name: "ACME wind/2" });
});
afterAll(() => hub.close());

const SECOND = { as: "second", account: 2 };
async function create(more: object = {}, call: CallOptions = {}): Promise<{ id: number; token: string }> {
  const body = { ingestionType: "SendViaHttp", mapping: "acme", ...more };
  const id = await hub.post("/fileTrigger", body, call);
  return { id, token: (await hub.get(`/fileTrigger/${id}`, undefined, call)).token };
}
const push = (raw: string | Uint8Array<ArrayBuffer>, more: CallOptions = {}, token = trigger.token) =>
  hub.call("POST", `/push/api/generic/${token}`, { ...more, raw });
const stored = async (id: number, call: CallOptions = {}) => ({
  record: await hub.get(`/storage/${id}`, undefined, call),
  content: Buffer.from(await contentOf(id, call)),
});

async function contentOf(id: number, call: CallOptions): Promise<ArrayBuffer> {
  const authorization = `Bearer ${await hub.token(call.as, call.account)}`;
  const response = await fetch(`${hub.url()}/storage/file?ids=${id}`, { headers: { authorization } });
  return response.arrayBuffer();
}

describe("a body", () => {
  test.each([
    ["application/json", '{"a":[1,2]}', "json"],
    ["application/json", '{"broken', "json"],
    ["application/xml; charset=utf-8", "<a/>", "xml"],
    ["text/plain", "1;2", "txt"],
    ["text/csv", "a,b\n1,2\n", "csv"],
    ["application/octet-stream", new Uint8Array([0, 255, 1, 254]), "bin"],
    ["application/octet-stream", new Uint8Array([0x50, 0x4b, 3, 4, 20, 0, 0, 0]), "zip"],
    ["acme/own", new Uint8Array([0x1f, 0x8b, 8, 0]), "gz"],
    ["application/x-www-form-urlencoded", "a=1&b=2", "bin"],
    ["multipart/mixed; boundary=x", "--x--", "bin"],
    ["acme/own", "text", "bin"],
  ])("of type %s is stored as it came, for its trigger", async (type, raw, extension) => {
    const answer = await push(raw, { headers: { "content-type": type } });
    const fileName = expect.stringMatching(new RegExp(`^ACME-wind-2-\\d{8}T\\d{9}Z\\.${extension}$`));
    expect(answer).toMatchObject({
      status: 200,
      body: { id: expect.any(Number), fileName, triggerId: trigger.id, status: "accepted" },
    });
    const { record, content } = await stored(answer.body.id);
    expect(content).toEqual(Buffer.from(raw));
    const facts = { via: "generic", triggerId: trigger.id, state: "received", createdBy: "manager", tags: [] };
    expect(record).toMatchObject({ ...facts, id: answer.body.id, fileName, siteId: null });
  });

  const formOf = (...parts: [name: string, content: string, fileName?: string][]) => {
    const form = new FormData();
    for (const [name, content, fileName] of parts)
      if (fileName === undefined) form.append(name, content);
      else form.append(name, new Blob([content], { type: "text/csv" }), fileName);
    return form;
  };
  const pushForm = async (form: FormData, query: Record<string, string> = {}) => {
    const framed = new Response(form);
    const headers = { "content-type": framed.headers.get("content-type") ?? "" };
    return await push(new Uint8Array(await framed.arrayBuffer()), { headers, query });
  };

  test.each([
    [formOf(["file", "a,b", "Łódź.csv"]), {}, "Łódź.csv"],
    [formOf(["any", "a,b", "from/other.csv"]), { Filename: "in/own.csv" }, "in/own.csv"],
    [formOf(["data", "a,b"]), {}, expect.stringMatching(/^ACME-wind-2-\d{8}T\d{9}Z\.txt$/)],
  ])("%# of a form is its only part", async (form, query, fileName) => {
    const answer = await pushForm(form, query);
    expect(answer).toMatchObject({ status: 200, body: { fileName, triggerId: trigger.id } });
    const { record, content } = await stored(answer.body.id);
    expect([record.fileName, content.toString()]).toEqual([answer.body.fileName, "a,b"]);
  });

  test("of a form that is not one file is refused, and leaves nothing", async () => {
    const before = await hub.get("/storage");
    const large = formOf(["file", "x".repeat(100_001), "large.csv"]);
    for (const [form, status, words] of [
      [formOf(["meter", "7"], ["file", "a", "a.csv"]), 400, "several parts"],
      [formOf(), 400, "no part"],
      [formOf(["file", "", "a.csv"]), 400, "empty"],
      [formOf(["file", "a", `${"x".repeat(256)}.csv`]), 400, "255 bytes"],
      [large, 413, "100000 bytes"],
    ] as const)
      expect(await pushForm(form)).toMatchObject({ status, body: { detail: expect.stringContaining(words) } });
    expect(await hub.get("/storage")).toEqual(before);
    expect(await pushForm(formOf(["file", "x".repeat(100_000), "full.csv"]))).toMatchObject({ status: 200 });
  });

  test("may be pushed by Basic, with a slash at the end, and with a token in upper case", async () => {
    const authorization = `Basic ${Buffer.from("pusher:pusher-password").toString("base64")}`;
    const { token } = trigger;
    for (const end of [`${token}/`, token.toUpperCase()]) {
      const answer = await hub.call("POST", `/push/api/generic/${end}`, { authorization, raw: "x" });
      expect(answer).toMatchObject({ status: 200, body: { triggerId: trigger.id } });
      expect((await stored(answer.body.id)).record).toMatchObject({ createdBy: "pusher" });
    }
  });

  test("of a trigger without a name is named after its id", async () => {
    const other = await create();
    const { body } = await push("x", {}, other.token);
    expect(body.fileName).toMatch(new RegExp(`^trigger-${other.id}-`));
  });

  test("of a trigger with a long name has a name that a file system takes", async () => {
    const other = await create({ name: "𐌰".repeat(100) });
    const { body } = await push("x", { headers: { "content-type": "application/json" } }, other.token);
    expect(body.fileName).toMatch(/^𐌰+-\d{8}T\d{9}Z\.json$/u);
    expect(Buffer.byteLength(body.fileName)).toBeLessThanOrEqual(255);
  });

  test("that is empty, compressed or too large is refused, and leaves nothing", async () => {
    const before = await hub.get("/storage");
    expect(await push("")).toMatchObject({ status: 400, body: { detail: expect.stringContaining("empty") } });
    expect(await push("x", { headers: { "content-encoding": "gzip" } })).toMatchObject({ status: 415 });
    expect(await push(new Uint8Array(100_001))).toMatchObject({ status: 413, body: { code: "too-large" } });
    expect(await chunked(100_001)).toBe(413);
    expect(await hub.get("/storage")).toEqual(before);
    expect(await chunked(100_000)).toBe(200);
  });

  test("beyond the quota of the account is refused", async () => {
    const other = await create({}, SECOND);
    expect(await push(new Uint8Array(900), SECOND, other.token)).toMatchObject({ status: 200 });
    expect(await push(new Uint8Array(200), SECOND, other.token)).toMatchObject({
      status: 507,
      body: { code: "quota-exceeded" },
    });
  });

  test("that is broken off is not stored", async () => {
    const before = await hub.get("/storage");
    await brokenOff();
    await expect.poll(() => readdir(join(hub.directory, "files", "incoming"))).toEqual([]);
    const after = await push("whole");
    expect(await hub.get("/storage")).toEqual([...before, await hub.get(`/storage/${after.body.id}`)]);
  });

  test("keeps its trigger when it is offered again", async () => {
    const { body } = await push("x");
    const { files } = hub.inside().store;
    expect(await files.advance(1, [{ id: body.id, state: "quarantined", reason: "a fault", atMs: 5 }])).toEqual([true]);
    expect(await hub.ok("POST", `/storage/${body.id}/process`)).toMatchObject({
      state: "received",
      triggerId: trigger.id,
    });
  });
});

describe("the name", () => {
  const named = async (disposition: string | undefined, query: Record<string, string> = {}) => {
    const headers = disposition === undefined ? {} : { "content-disposition": disposition };
    return (await push("x", { headers: { "content-type": "text/csv", ...headers }, query })).body;
  };
  test.each([
    ['attachment; filename="meters of May.csv"', "meters of May.csv"],
    ["attachment; filename=plain.csv", "plain.csv"],
    ["attachment; filename=x.csv; filename*=UTF-8''%e2%82%ac%20rates.csv", "€ rates.csv"],
    ['form-data; name="file"; FILENAME="C.csv"', "C.csv"],
    ['attachment; filename="plant/7.csv"', "plant/7.csv"],
  ])("is that of Content-Disposition: %s", async (disposition, fileName) => {
    expect(await named(disposition)).toMatchObject({ fileName });
  });

  test("of the query counts before that of the header", async () => {
    expect(await named('attachment; filename="header.csv"', { fileName: "query.csv" })).toMatchObject({
      fileName: "query.csv",
    });
    expect((await named("inline")).fileName).toMatch(/^ACME.*csv$/);
  });

  test.each([
    ['attachment; filename="../x.csv"', {}, "Content-Disposition"],
    ['attachment; filename=""', {}, "Content-Disposition"],
    [`attachment; filename="${"x".repeat(300)}"`, {}, "Content-Disposition"],
    ["attachment; filename*=UTF-8''%00.csv", {}, "Content-Disposition"],
    ["attachment; filename*=UTF-8''%zz.csv", {}, "Content-Disposition"],
    ["filename=x", {}, "Content-Disposition"],
    [undefined, { Filename: "/etc/passwd" }, "Filename"],
    [undefined, { Filename: "" }, "Filename"],
  ])("%s %j is refused", async (disposition, query, path) => {
    expect(await named(disposition, query as Record<string, string>)).toMatchObject({
      status: 400,
      errors: [{ path }],
    });
  });
});

describe("a token", () => {
  const OTHER = "11111111-2222-4333-8444-555555555555";
  test("of no trigger, of another account, replaced, or no GUID at all is a 404 in the same words", async () => {
    const theirs = await create({}, SECOND);
    const former = await create();
    await hub.ok("PUT", "/fileTrigger", { body: { id: former.id, token: OTHER.replace("1", "2") } });
    const answers = [];
    for (const token of [OTHER, theirs.token, former.token, "x"]) answers.push(await push("x", {}, token));
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: "unknown-token" } });
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  test("of a trigger that takes no pushes is a 409 that says why, before the body is read", async () => {
    const off = await create({ state: "Inactive" });
    const gone = await create();
    await hub.ok("DELETE", "/fileTrigger", { query: { ids: gone.id } });
    const patterns = [{ filterType: "EndsWith", value: ".csv" }];
    const other = await create({ ingestionType: "UploadInStorage", fileNamePatternMatches: patterns });
    const before = await hub.get("/storage");
    for (const [{ token, id }, words] of [
      [off, "Inactive"],
      [gone, "deleted"],
      [other, "UploadInStorage"],
    ] as const) {
      const answer = await push(new Uint8Array(200_000), {}, token);
      expect(answer).toMatchObject({ status: 409, body: { code: "conflict" } });
      expect(answer.body.detail).toContain(`the file trigger ${id} `);
      expect(answer.body.detail).toContain(words);
    }
    expect(await hub.get("/storage")).toEqual(before);
    await hub.ok("PUT", "/fileTrigger", { body: { id: off.id, state: "Active" } });
    expect(await push("x", {}, off.token)).toMatchObject({ status: 200 });
  });
});

test("an unknown parameter is named", async () => {
  const { status, headers } = await push("x", { query: { Folder: "a" } });
  expect(status).toBe(200);
  expect(headers.get(WARNING_HEADER)).toContain("Folder");
});

test("a pushed file is there after a restart", async () => {
  const { body } = await push("kept");
  await hub.restart();
  expect(String((await stored(body.id)).content)).toBe("kept");
});

/** Without Content-Length and Content-Type; the status. */
async function chunked(bytes: number): Promise<number | undefined> {
  const authorization = `Bearer ${await hub.token()}`;
  return new Promise((resolve, reject) => {
    const call = request(`${hub.url()}/push/api/generic/${trigger.token}`, {
      method: "POST",
      headers: { authorization, "transfer-encoding": "chunked" },
    });
    call.on("response", (response) => {
      resolve(response.statusCode);
      response.resume();
    });
    call.on("error", reject);
    call.end(Buffer.alloc(bytes));
  });
}

/** Sends a part of what it announces, once the hub has begun to read it. */
async function brokenOff(): Promise<void> {
  const authorization = `Bearer ${await hub.token()}`;
  const call = request(`${hub.url()}/push/api/generic/${trigger.token}`, {
    method: "POST",
    headers: { authorization, "content-type": "text/csv", "content-length": 50_000, expect: "100-continue" },
  });
  call.on("error", () => undefined);
  call.flushHeaders();
  await once(call, "continue");
  await new Promise<void>((resolve) => call.write(Buffer.alloc(10_000), () => resolve()));
  call.destroy();
}
