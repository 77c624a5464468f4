/**
 * Accounts are walls: every route that the server has is tried with another account's token and this
 * account's ids, names and texts. Nothing leaks, nothing changes, and what belongs to others cannot be told
 * from what does not exist.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPage } from "#hub/http/access.ts";
import { openBrowser } from "./browser.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";
import { sftpSender } from "./transfer/sender.ts";
import { type Attempt, attemptsOf, elsewhere, nowhereWords, sentOf } from "./walls/attempts.ts";
import { DATE, FIRST, HIDDEN, holdEverything, NAMED, TOKEN, VALUE } from "./walls/held.ts";
import { rowsOf } from "./walls/store-rows.ts";

let hub: TestHub;
const OTHER = { as: "second", account: 2 };
const NOBODYS = { id: 987_654, text: "nowhere" };
/** Tables that hold rows of an account only for a moment, or only with settings that other tests make. */
const EMPTY = ["body", "recovery_code", "usage"];

/** What the other account calls with. */
const FOREIGN: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  "the access token of a manager": async () => ({ authorization: `Bearer ${await hub.token("second", 2)}` }),
  "a personal token of a manager": async () => {
    const body = { name: "walls", days: 1, scopes: ["datahub-api", "push-data"] };
    const { token } = await hub.ok("POST", "/user/tokens", { ...OTHER, body });
    return { authorization: `Bearer ${token}` };
  },
  "the session of a manager's browser": async () => {
    const browser = openBrowser(hub);
    await browser.signIn("second");
    return browser.script();
  },
};

/** Routes without a wall, and why. */
const OPEN: Readonly<Record<string, string>> = {
  "GET /health": "counts, for monitoring",
  "POST /connect/token": "asks for the password itself",
  "POST /realms/:realm/protocol/openid-connect/token": "asks for the password itself",
  "GET /.well-known/openid-configuration": "addresses of the token interface",
  "GET /realms/:realm/.well-known/openid-configuration": "addresses of the token interface",
  "GET /.well-known/jwks.json": "public keys",
  "GET /realms/:realm/protocol/openid-connect/certs": "public keys",
  "GET /openapi.json": "the documentation",
  "GET /assets/kit.css": "the colours of pages",
  "GET /assets/explorer/:file": "the script and the colours of the explorer",
  "GET /docs": "the documentation",
  "GET /docs/json": "the documentation",
  "GET /docs/yaml": "the documentation",
  "GET /docs/static/index.html": "the documentation",
  "GET /docs/static/swagger-initializer.js": "the documentation",
  "GET /docs/static/*": "the documentation",
  "HEAD /docs/static/*": "the documentation",
};

beforeAll(async () => {
  hub = await startTestHub({ transfer: { sftp: { listen: "127.0.0.1:0" } } });
  await holdEverything(hub);
  await createChain(hub, { more: OTHER });
});
afterAll(() => hub.close());

/** Everything that the store keeps of account 1. */
const everything = () => rowsOf(hub.options.store, 1);

let forms = 0;

async function made(attempt: Attempt, foreign: Readonly<Record<string, string>>) {
  const { raw, headers } = sentOf(attempt);
  // Forms and invited people have names of their own, and each attempt may make one.
  forms += 1;
  const body =
    typeof raw === "string"
      ? raw.replace("Billing", `Form ${forms}`).replace(/bob@|"ada"/, (name) => name.replace(/bob|ada/, `$&${forms}`))
      : raw;
  const query = attempt.query === undefined ? "" : `?${new URLSearchParams(attempt.query)}`;
  const answer = await fetch(hub.url() + attempt.path + query, {
    method: attempt.route.method,
    redirect: "manual",
    headers: { ...headers, ...foreign },
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("content-type") ?? "");
  return {
    status: answer.status,
    text: [text, ...answer.headers.values()].join("\n"),
    body: isJson && text !== "" ? JSON.parse(text) : text,
  };
}

/** Of refusals the words; of lists their length alone, since the account's own rows may be among them. */
function shapeOf({ status, body }: { readonly status: number; readonly body: unknown }): string {
  if (status < 400) return Array.isArray(body) ? `${status} ${body.length} rows` : `${status} done`;
  return `${status} ${nowhereWords(JSON.stringify(body)).replaceAll(/\d+/g, "#")}`;
}

test("account 1 holds a row in every table, with texts that nobody else may see", async () => {
  const rows = await everything();
  const empty = Object.keys(rows).filter((table) => rows[table]?.length === 0 && !EMPTY.includes(table));
  expect(empty, "test/hub/walls/held.ts is to make a row of these").toEqual([]);
  expect(JSON.stringify(rows).split(HIDDEN).length).toBeGreaterThan(30);
});

test("routes are open only by name, for a reason", () => {
  const open = hub.routes.filter(({ facts }) => facts.access === "open").map(({ method, url }) => `${method} ${url}`);
  expect(open.sort()).toEqual(Object.keys(OPEN).sort());
});

describe.each(Object.keys(FOREIGN))("with %s of another account", (credentials) => {
  test("no route shows, changes or even confirms data", async () => {
    const before = await everything();
    // Pages show what is the own of a session: `sessions.test.ts`.
    const attempts = hub.routes.filter(({ facts }) => !isPage(facts)).flatMap(attemptsOf);
    expect(attempts.length).toBeGreaterThan(250);
    const breaches: string[] = [];
    const foreign = (await FOREIGN[credentials]?.()) ?? {};
    for (const attempt of attempts) {
      const called = `${attempt.route.method} ${attempt.path} ${JSON.stringify(attempt.query ?? {})}`;
      const theirs = await made(attempt, foreign);
      // A caller who is not let in at all would find every wall.
      if (theirs.status === 401 && attempt.route.facts.access !== "open") breaches.push(`${called} is not let in`);
      if (theirs.status >= 500 && theirs.status !== 501) breaches.push(`${called}: ${theirs.status}`);
      for (const secret of [HIDDEN, String(VALUE), TOKEN])
        if (theirs.text.includes(secret)) breaches.push(`${called} shows ${secret}: ${theirs.text.slice(0, 300)}`);
      const shapes = [shapeOf(theirs), shapeOf(await made(elsewhere(attempt), foreign))];
      if (shapes[0] !== shapes[1]) breaches.push(`${called} confirms: ${shapes.join(" | ").slice(0, 400)}`);
    }
    expect(breaches).toEqual([]);
    expect(await everything()).toEqual(before);
  });
});

test("the file-transfer server shows and changes only files of the user's own account", async () => {
  const before = await everything();
  const sender = await sftpSender(hub, { username: "second", password: "second-password" });
  try {
    expect(JSON.stringify([await sender.names("/"), await sender.names("/..")])).not.toContain(HIDDEN);
    for (const folder of ["/1", "/First", "/../1", `/${HIDDEN}`, `/../1/${HIDDEN}`]) {
      await expect(sender.names(folder), folder).rejects.toThrow();
      await expect(sender.stat(`${folder}/${NAMED.text}.csv`), folder).rejects.toThrow();
      await expect(sender.open(`${folder}/${NAMED.text}.csv`, "r"), folder).rejects.toThrow();
      await expect(sender.call("unlink", `${folder}/${NAMED.text}.csv`), folder).rejects.toThrow();
    }
    await sender.put("/own.csv", "1;2\n");
    await expect(sender.call("rename", "/own.csv", "/../1/own.csv")).rejects.toThrow();
  } finally {
    sender.end();
  }
  expect(await everything()).toEqual(before);
});

test("readings for another account's variables are discarded as if these did not exist", async () => {
  const before = await everything();
  const data = [{ date: DATE, value: 1 }];
  for (const [theirs, nobodys] of [
    [{ variableId: FIRST }, { variableId: NOBODYS.id }],
    [
      { sourceSerialNumber: NAMED.serial, mappingConfig: "kWh" },
      { sourceSerialNumber: NOBODYS.text, mappingConfig: "kWh" },
    ],
    [
      { sourceId: FIRST, mappingConfig: "kWh" },
      { sourceId: NOBODYS.id, mappingConfig: "kWh" },
    ],
    [
      { sourceEan: NAMED.ean, variableTypeId: 0 },
      { sourceEan: NOBODYS.text, variableTypeId: 0 },
    ],
    [
      { sourceName: NAMED.text, mappingConfig: "kWh" },
      { sourceName: NOBODYS.text, mappingConfig: "kWh" },
    ],
    [
      { meterNumber: NAMED.meter, mappingConfig: "kWh" },
      { meterNumber: NOBODYS.text, mappingConfig: "kWh" },
    ],
  ]) {
    const reasons = [];
    for (const target of [theirs, nobodys]) {
      const outcome = await hub.push([{ ...target, data }], OTHER);
      expect(outcome).toMatchObject({ stored: 0, discarded: [{ count: 1 }] });
      reasons.push(outcome.discarded[0].reason);
    }
    expect(reasons[0]).toBe(reasons[1]);
  }
  expect(await everything()).toEqual(before);
});

test("operation ids and idempotency keys of two accounts are independent", async () => {
  const headers = { "idempotency-key": "shared key" };
  const query = { operationId: NAMED.operation };
  const first = await hub.call("POST", "/push/api/data", {
    headers,
    query: { operationId: "one" },
    body: [],
  });
  expect(first.status).toBe(200);
  const body = [{ variableId: NOBODYS.id, data: [] }];
  expect(await hub.call("POST", "/push/api/data", { ...OTHER, headers, query, body })).toMatchObject({
    status: 200,
  });
  await hub.settled(NAMED.operation, OTHER);
  expect(await hub.get(`/operations/${NAMED.operation}`, undefined, OTHER)).toMatchObject({
    account: "2",
    received: 0,
  });
  expect(await hub.get(`/operations/${NAMED.operation}`)).toMatchObject({ account: "1", received: 2 });
});
