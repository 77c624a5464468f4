/** The header Idempotency-Key of uploads and of pushed files. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
let token: string;
const keyed = (key: string) => ({ headers: { "idempotency-key": key } });
const SECOND = { as: "second", account: 2 };
beforeAll(async () => {
  hub = await startTestHub({
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "1KB" } },
    ],
  });
  const id = await hub.post("/fileTrigger", { ingestionType: "SendViaHttp", mapping: "acme" });
  token = (await hub.get(`/fileTrigger/${id}`)).token;
});
afterAll(() => hub.close());

const push = (raw: string, more: object) => hub.call("POST", `/push/api/generic/${token}`, { raw, ...more });

test("an upload that is repeated is answered by the first id, and stored once", async () => {
  const upload = (content: string, name = "a.csv", more: object = {}) =>
    hub.upload(content, name, { ...more, ...keyed("upload") });
  const answers = await Promise.all(Array.from({ length: 4 }, () => upload("x")));
  const id = answers[0]?.body;
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: id });
  const said = answers.map(({ headers }) => headers.get("idempotent-replayed"));
  expect(said.toSorted()).toEqual([null, "true", "true", "true"].toSorted());
  await hub.restart();
  expect(await upload("x")).toMatchObject({ status: 200, body: id });
  expect(await hub.get("/storage")).toMatchObject([{ id, repeatedDate: expect.stringMatching(/^\d{4}-/) }]);
  for (const other of [await upload("y"), await upload("x", "b.csv"), await push("x", keyed("upload"))])
    expect(other).toMatchObject({ status: 422, body: { code: "idempotency-conflict" } });
  const theirs = await upload("x", "a.csv", SECOND);
  expect(theirs.status).toBe(200);
  expect(theirs.body).not.toBe(id);
  expect((await hub.call("GET", "/storage/file", { query: { ids: id } })).body).toBe("x");
  expect(await hub.upload("x", "a.csv", keyed("k".repeat(500)))).toMatchObject({ status: 400 });
});

test("a repeat is answered when the quota is used up, and when the site is gone", async () => {
  const { siteId } = await createChain(hub, { variables: [], more: SECOND });
  const upload = () =>
    hub.upload("z".repeat(900), { Filename: "z.csv", SiteId: siteId }, { ...SECOND, ...keyed("full") });
  const first = await upload();
  expect(first.status).toBe(200);
  expect(await hub.upload("z".repeat(900), "z.csv", SECOND)).toMatchObject({ status: 507 });
  await hub.ok("DELETE", `/sites/${siteId}`, SECOND);
  expect(await upload()).toMatchObject({ status: 200, body: first.body });
});

test("a push that is repeated is answered as the first, also by its made name", async () => {
  const first = await push("1;2", keyed("push"));
  expect(first.status).toBe(200);
  const repeat = await push("1;2", keyed("push"));
  expect(repeat).toMatchObject({ status: 200, body: first.body });
  expect([first, repeat].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
  expect(await push("3;4", keyed("push"))).toMatchObject({ status: 422, body: { code: "idempotency-conflict" } });
  expect((await push("1;2", {})).body.id).not.toBe(first.body.id);
});
