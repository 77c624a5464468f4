/** Stored files beyond the rules of the specification: refusals, ranges, archives and removals. */
import { createHash, randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import { createLog } from "#core/log.ts";
import { createChain, multipartOf, type Query, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
const SECOND = { as: "second", account: 2 };
beforeAll(async () => {
  hub = await startTestHub({
    limits: { file: "100KB" },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "1KB" } },
    ],
  });
});
afterAll(() => hub.close());

/** With a database that hubs share, bytes are removed some time after their record (`bytes.test.ts`). */
async function expectBytes(check: (blobs: readonly string[]) => void): Promise<void> {
  if (hub.options.store.kind === "sqlite") check(await onDisk("blobs"));
}

/** Files below the folder of the stored ones. */
async function onDisk(folder: "blobs" | "incoming" | "removing"): Promise<string[]> {
  const all = await readdir(join(hub.directory, "files"), { recursive: true, withFileTypes: true });
  const files = all.filter((entry) => entry.isFile() && entry.name !== "store");
  const within = (path: string) => ["incoming", "removing"].find((name) => path.endsWith(name)) ?? "blobs";
  return files.filter(({ parentPath }) => within(parentPath) === folder).map(({ name }) => name);
}

const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

async function stored(content: string | Uint8Array<ArrayBuffer>, query: Query | string = "x.csv"): Promise<number> {
  const answer = await hub.upload(content, query);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body;
}

const isLasting = ([name]: readonly [string, string]) =>
  !["date", "connection", "keep-alive", "transfer-encoding"].includes(name);

const download = async (query: Query, headers: Record<string, string> = {}, method = "GET") => {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of [value].flat()) parameters.append(name, `${one}`);
  const authorization = `Bearer ${await hub.token()}`;
  const response = await fetch(`${hub.url()}/storage/file?${parameters}`, {
    method,
    headers: { authorization, ...headers },
  });
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
};

describe("an upload is refused, and leaves nothing", () => {
  test.each([
    ["", "Filename"],
    ["../x.csv", ".."],
    ["a/../x.csv", ".."],
    ["a/./x.csv", "part ."],
    ["/etc/passwd", "absolute"],
    ["C:x.csv", "absolute"],
    ["a\\x.csv", "backslash"],
    ["a//x.csv", "empty part"],
    ["folder/", "empty part"],
    ["a\nb.csv", "control character"],
    ["a\u0085b.csv", "control character"],
    ["x".repeat(300), "255"],
    [`${"y".repeat(300)}/x.csv`, "255"],
    [`${"z".repeat(200)}/`.repeat(10), "1024"],
  ])("with the name %j", async (Filename, words) => {
    const before = await hub.get("/storage");
    const answer = await hub.upload("x", { Filename });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "Filename" }] } });
    expect(answer.body.detail).toContain(words);
    expect(await hub.get("/storage")).toEqual(before);
  });

  test("with another account's site, in the words for one that does not exist", async () => {
    const { siteId } = await createChain(hub, { more: SECOND });
    const theirs = await hub.upload("x", { Filename: "x.csv", SiteId: siteId });
    const nowhere = await hub.upload("x", { Filename: "x.csv", SiteId: 987_654 });
    expect(theirs).toMatchObject({ status: 400, body: { errors: [{ path: "SiteId" }] } });
    expect(JSON.stringify(theirs.body).replaceAll(`${siteId}`, "987654")).toBe(JSON.stringify(nowhere.body));
  });

  test("without a file, with an empty one, with two, and without multipart", async () => {
    const before = await onDisk("blobs");
    const query = { Filename: "x.csv" };
    expect(await hub.call("POST", "/storage", { query, ...multipartOf() })).toMatchObject({ status: 400 });
    expect(await hub.upload("")).toMatchObject({ status: 400, body: { detail: expect.stringContaining("empty") } });
    expect(await hub.call("POST", "/storage", { query, ...multipartOf("first", "second") })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("several") },
    });
    for (const type of ["text/csv", "application/json"]) {
      const more = { query, raw: "{}", headers: { "content-type": type } };
      expect(await hub.call("POST", "/storage", more)).toMatchObject({ status: 415 });
    }
    expect(await hub.call("POST", "/storage", { query })).toMatchObject({ status: 415 });
    await expectBytes((blobs) => expect(blobs).toEqual(before));
    expect(await onDisk("incoming")).toEqual([]);
  });

  test("beyond the limit: before the body when its length is known, else while it is read", async () => {
    const before = await onDisk("blobs");
    const body = multipartOf(new Uint8Array(200_000));
    expect((await sent(body.raw, { ...body.headers, "content-length": `${10 ** 12}` }, 0)).status).toBe(413);
    expect(await sent(body.raw, body.headers)).toMatchObject({ status: 413, text: expect.stringContaining("100000") });
    const exact = new Uint8Array(randomBytes(100_000));
    expect(await hub.upload(exact)).toMatchObject({ status: 200 });
    expect((await onDisk("blobs")).filter((name) => !before.includes(name))).toEqual([sha256(exact)]);
    expect(await onDisk("incoming")).toEqual([]);
  });

  test("when it is aborted", async () => {
    const body = multipartOf(new Uint8Array(50_000));
    const before = await onDisk("blobs");
    await expect(sent(body.raw, { ...body.headers, "content-length": `${body.raw.length}` }, 30_000)).rejects.toThrow();
    await expect.poll(() => onDisk("incoming")).toEqual([]);
    // The same with an end that claims to be one.
    expect((await sent(body.raw.subarray(0, 30_000), body.headers)).status).toBe(400);
    await expectBytes((blobs) => expect(blobs).toEqual(before));
    expect(await onDisk("incoming")).toEqual([]);
  });

  test("when the account's bytes are used up, until some are removed", async () => {
    const first = await hub.upload("a".repeat(900), "a.csv", SECOND);
    expect(first.status).toBe(200);
    expect(await hub.upload("b".repeat(200), "b.csv", SECOND)).toMatchObject({
      status: 507,
      body: { code: "quota-exceeded" },
    });
    await expectBytes((blobs) => expect(blobs).not.toContain(sha256("b".repeat(200))));
    await hub.ok("DELETE", "/storage", { ...SECOND, query: { ids: first.body } });
    const second = await hub.upload("b".repeat(200), "b.csv", SECOND);
    expect(second.status).toBe(200);
    await hub.ok("DELETE", "/storage", { ...SECOND, query: { ids: second.body } });
  });
});

/** A raw request; `until`: how many bytes of the body are sent before the connection is cut (0: it is not). */
async function sent(body: Uint8Array, headers: Record<string, string>, until = body.length) {
  const authorization = `Bearer ${await hub.token()}`;
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const call = request(`${hub.url()}/storage?Filename=x.csv`, {
      method: "POST",
      headers: { authorization, ...headers },
    });
    call.on("error", reject);
    call.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
        call.destroy();
      });
    });
    if (until === body.length) call.end(body);
    else if (until === 0) call.flushHeaders();
    else call.write(body.subarray(0, until), () => setImmediate(() => call.destroy(new Error("cut"))));
  });
}

test("rights: a Datapusher uploads, a User reads, a Manager removes", async () => {
  expect(await hub.upload("x", "x.csv", { as: "plain" })).toMatchObject({ status: 403 });
  const { body: id } = await hub.upload("from the pusher", "pusher.csv", { as: "pusher" });
  expect(await hub.get(`/storage/${id}`, undefined, { as: "plain" })).toMatchObject({ createdBy: "pusher" });
  expect(await hub.call("DELETE", "/storage", { as: "pusher", query: { ids: id } })).toMatchObject({ status: 403 });
  expect(await hub.call("DELETE", "/storage", { query: { ids: id } })).toMatchObject({ status: 200 });
});

test("a parameter of an upload that the address does not know is named in a warning", async () => {
  const answer = await hub.upload("x", { Filename: "x.csv", Tagg: "Invoice" });
  expect(answer.headers.get("x-headgate-warning")).toContain("Tagg");
});

test("an unknown parameter stops a removal", async () => {
  const id = await stored("kept");
  const answer = await hub.call("DELETE", "/storage", { query: { ids: id, WhatIf: true } });
  expect(answer).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining("no parameter WhatIf; it takes ids, id; nothing was removed") },
  });
  expect(await hub.get(`/storage/${id}`)).toMatchObject({ id });
});

describe("the content of a file", () => {
  const content = Buffer.from("0123456789".repeat(50));
  const file = async () => ({ ids: await stored(new Uint8Array(content), 'a/Zähler "1".csv') });

  test("comes with its type, its name and its digest, and not at all when the caller has it", async () => {
    const { status, headers, bytes } = await download(await file());
    expect([status, bytes.equals(content)]).toEqual([200, true]);
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(headers.get("content-length")).toBe("500");
    expect(headers.get("etag")).toBe(`"${sha256(content)}"`);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-disposition")).toBe(
      `attachment; filename="Z_hler _1_.csv"; filename*=UTF-8''Z%C3%A4hler%20%221%22.csv`,
    );
    const again = await download(await file(), { "if-none-match": headers.get("etag") ?? "" });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });

  test.each([
    ["bytes=0-9", 206, "bytes 0-9/500", content.subarray(0, 10)],
    ["bytes=490-", 206, "bytes 490-499/500", content.subarray(490)],
    ["bytes=-5", 206, "bytes 495-499/500", content.subarray(495)],
    ["bytes=-900", 206, "bytes 0-499/500", content],
    ["bytes=498-900", 206, "bytes 498-499/500", content.subarray(498)],
    ["bytes=500-", 416, "bytes */500", null],
    ["bytes=-0", 416, "bytes */500", null],
    ["bytes=9-1", 200, null, content],
    ["bytes=0-1,5-6", 200, null, content],
    ["lines=1-2", 200, null, content],
  ])("in the range %s: %i", async (range, status, contentRange, bytes) => {
    const answer = await download(await file(), { range });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-range")).toBe(contentRange);
    if (bytes !== null) expect(answer.bytes.equals(bytes)).toBe(true);
  });

  test("in a range only of the content that the caller knows", async () => {
    const headers = { range: "bytes=0-9", "if-range": '"another"' };
    expect(await download(await file(), headers)).toMatchObject({ status: 200 });
    const known = { range: "bytes=0-9", "if-range": `"${sha256(content)}"` };
    expect(await download(await file(), known)).toMatchObject({ status: 206 });
  });

  test("has the same headers by HEAD, without a body and whatever the range", async () => {
    const ids = await stored("b", "second.csv");
    const { ids: first } = await file();
    const headersOf = ({ headers }: { headers: Headers }) => Object.fromEntries([...headers].filter(isLasting));
    for (const query of [{ ids: first }, { ids: [Number(first), ids] }, { ids: first, colour: "red" }]) {
      const [got, head] = [await download(query), await download(query, { range: "bytes=0-9" }, "HEAD")];
      expect([head.status, head.bytes.length, headersOf(head)]).toEqual([200, 0, headersOf(got)]);
    }
    expect(await download({ ids: first }, { "if-none-match": `"${sha256(content)}"` }, "HEAD")).toMatchObject({
      status: 304,
    });
    expect((await download({ ids: 999_999 }, {}, "HEAD")).status).toBe(400);
  });

  test("of HTML is never sent as such", async () => {
    const ids = await stored("<!doctype html><script>alert(1)</script>", "page.html");
    expect((await download({ ids })).headers.get("content-type")).toBe("text/plain; charset=utf-8");
  });

  test("of several files is an archive with their names, those of one name told apart", async () => {
    const large = randomBytes(90_000);
    const ids = [
      await stored("one", "z/a.csv"),
      await stored("two", "z/a.csv"),
      await stored(new Uint8Array(large), "ü.bin"),
    ];
    const { status, bytes } = await download({ ids });
    expect(status).toBe(200);
    const zip = await fromBufferPromise(bytes);
    const found: Record<string, Buffer> = {};
    for await (const entry of zip.eachEntry()) {
      const stream = await zip.openReadStreamPromise(entry);
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk as Buffer);
      found[entry.fileName] = Buffer.concat(chunks);
    }
    expect(Object.keys(found)).toEqual(["z/a.csv", `z/a (${ids[1]}).csv`, "ü.bin"]);
    expect(Object.values(found).map(sha256)).toEqual([sha256("one"), sha256("two"), sha256(large)]);
  });
});

test("an archive with a file whose bytes are missing breaks off, and the log says so", async () => {
  const told: string[] = [];
  const log = createLog("warn", { write: (line) => void told.push(line) });
  const own = await startTestHub({}, true, { log });
  try {
    const ids = await Promise.all(
      ["first", "missing"].map(async (text) => (await own.upload(text, `${text}.csv`)).body),
    );
    const digest = sha256("missing");
    await rm(join(own.directory, "files", digest.slice(0, 2), digest));
    await expect(own.call("GET", "/storage/file", { query: { ids } })).rejects.toThrow();
    expect(told.filter((line) => line.includes("was not sent to its end"))).toHaveLength(1);
  } finally {
    await own.close();
  }
});

test("an archive has each file under a name of its own", async () => {
  // Ids are given in order, so that the second has the name that the third would get.
  const first = await stored("one", "b.csv");
  const second = await stored("two", `b (${first + 2}).csv`);
  const ids = [first, second, await stored("three", "b.csv")];
  expect(ids[2]).toBe(first + 2);
  const zip = await fromBufferPromise((await download({ ids })).bytes);
  const names: string[] = [];
  for await (const { fileName } of zip.eachEntry()) names.push(fileName);
  expect(names).toHaveLength(3);
  expect(new Set(names).size).toBe(3);
});

describe("files that are not the account's", () => {
  test("cannot be read, removed or told from those that do not exist", async () => {
    const id = await stored("secret of the first");
    for (const [method, path] of [
      ["GET", "/storage/file?ids="],
      ["DELETE", "/storage?ids="],
      ["GET", "/storage/"],
    ] as const) {
      const theirs = await hub.call(method, `${path}${id}`, SECOND);
      const nowhere = await hub.call(method, `${path}987654`, SECOND);
      expect(theirs.status).toBeGreaterThanOrEqual(400);
      expect([theirs.status, JSON.stringify(theirs.body).replaceAll(`${id}`, "987654")]).toEqual([
        nowhere.status,
        JSON.stringify(nowhere.body),
      ]);
    }
    expect(await hub.get(`/storage/${id}`)).toMatchObject({ id });
  });

  test("keep the others of a call from being removed, and are named", async () => {
    const id = await stored("stays");
    const answer = await hub.call("DELETE", "/storage", { query: { ids: [id, 777_777, 888_888] } });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "ids" }] } });
    expect(answer.body.detail).toContain("777777, 888888");
    expect(await hub.get(`/storage/${id}`)).toMatchObject({ id });
    expect(await hub.call("DELETE", "/storage")).toMatchObject({ status: 400 });
  });
});

describe("bytes", () => {
  test("of equal files are kept once, until the last is removed", async () => {
    const first = await stored("equal", "a.csv");
    const second = await stored("equal", "a.csv");
    expect(second).not.toBe(first);
    expect((await onDisk("blobs")).filter((name) => name === sha256("equal"))).toHaveLength(1);
    await hub.ok("DELETE", "/storage", { query: { ids: first } });
    expect((await download({ ids: second })).bytes.toString()).toBe("equal");
    await hub.ok("DELETE", "/storage", { query: { ids: second } });
    await expectBytes((blobs) => expect(blobs).not.toContain(sha256("equal")));
  });

  test("of the same content survive uploads and removals at the same time", async () => {
    const ids: number[] = [];
    await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        for (let round = 0; round < 5; round += 1) {
          const id = await stored("contested", `${at}.csv`);
          if (round < 4) await hub.ok("DELETE", "/storage", { query: { ids: id } });
          else ids.push(id);
        }
      }),
    );
    for (const one of ids) expect((await download({ ids: one })).bytes.toString()).toBe("contested");
    expect(new Set(ids).size).toBe(8);
    await hub.ok("DELETE", "/storage", { query: { ids } });
    await expectBytes((blobs) => expect(blobs).not.toContain(sha256("contested")));
  });
});

test("a received file is not offered to the triggers again, and one that does not exist neither", async () => {
  const id = await stored("x");
  expect(await hub.call("POST", `/storage/${id}/process`)).toMatchObject({ status: 409 });
  expect(await hub.call("POST", "/storage/987654/process")).toMatchObject({ status: 404 });
});

test("the site of a file can be removed; the file stays", async () => {
  const { siteId } = await createChain(hub, { variables: [] });
  const id = await stored("x", { Filename: "x.csv", SiteId: siteId });
  await hub.ok("DELETE", `/sites/${siteId}`);
  expect(await hub.get(`/storage/${id}`)).toMatchObject({ siteId: null });
});

test("without files.path the bytes are beside the store; hubs that share a database need one", async () => {
  const plain = await startTestHub({ files: {} });
  try {
    const answer = await plain.upload("x", "x.csv");
    if (plain.options.store.kind === "sqlite") {
      expect(answer).toMatchObject({ status: 200 });
      expect(await readdir(`${plain.options.store.path}.files`)).toContain(sha256("x").slice(0, 2));
    } else
      for (const [method, path] of [
        ["POST", "/storage"],
        ["GET", "/storage"],
        ["GET", "/storage/1"],
        ["DELETE", "/storage?ids=1"],
      ] as const)
        expect(await plain.call(method, path)).toMatchObject({
          status: 501,
          body: { code: "not-supported", detail: expect.stringContaining("files.path") },
        });
  } finally {
    await plain.close();
  }
});
