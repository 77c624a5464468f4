/** Limits of what one account makes: sites, sources, variables, alarm templates, alarms, users and file triggers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser } from "./browser.ts";
import { createChain, startTestHub, type TestHub, until } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";

const OF_ALL = {
  sites: 3,
  sources: 3,
  variables: 4,
  alarmTemplates: 2,
  alarms: 3,
  users: 5,
  triggers: 2,
  ...{ forms: 2, groups: 2, views: 2, alarmViews: 2 },
};
const OTHER = { account: 2 };

let hub: TestHub;
let box: MailBox;
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  const accounts = [
    { id: 1, name: "First" },
    { id: 2, name: "Second", limits: { sites: 4 } },
  ];
  box = await openMailBox();
  hub = await startTestHub({ customerLimits: OF_ALL, accounts, ...box.options });
  chain = await createChain(hub);
});
afterAll(async () => {
  await hub.close();
  await box.close();
});

const site = { name: "Site", typeId: 3, timeZoneId: "Europe/Paris" };
const bodies: Readonly<Record<string, () => object>> = {
  sites: () => site,
  sources: () => ({ name: "Source", siteId: chain.siteId, sourceTypeId: 1 }),
  variables: () => ({ name: "Energy", sourceId: chain.sourceId, variableTypeId: 0, unitId: 8 }),
};

describe("an account has at most", () => {
  test.each(["sites", "sources", "variables"] as const)("as many %s as its limit says", async (list) => {
    const create = () => hub.call("POST", `/${list}`, { body: bodies[list]?.() });
    // One is there; several that come at once are as one after the other.
    const statuses = (await Promise.all(Array.from({ length: 6 }, create))).map(({ status }) => status);
    const most = OF_ALL[list];
    expect(statuses.toSorted()).toEqual(Array.from({ length: 6 }, (_, at) => (at < most - 1 ? 200 : 409)));
    expect(await create()).toMatchObject({
      status: 409,
      body: {
        code: "quota-exceeded",
        detail: expect.stringContaining(
          `an account may have ${most} ${list}, and this one would have more (\`${list}\``,
        ),
      },
    });
    expect(await hub.get(`/${list}`)).toHaveLength(most);
  });

  test.each([
    ["forms", "/form", (name: string) => ({ name, groups: [] })],
    ["groups", "/groups", (name: string) => ({ name })],
    ["views", "/views", (name: string) => ({ name, entityType: "Site", customFilter: "Name = 'A'" })],
    ["alarmViews", "/alarms/view", (name: string) => ({ name, filter: {} })],
  ])("as many %s as its limit says", async (setting, path, body) => {
    for (const name of ["One", "Two"]) await hub.post(path, body(name));
    expect(await hub.call("POST", path, { body: body("Three") })).toMatchObject({
      status: 409,
      body: { code: "quota-exceeded", detail: expect.stringContaining(`(\`${setting}\` of`) },
    });
  });

  test("its own limits, whatever those of others are", async () => {
    for (let at = 0; at < 4; at += 1) await hub.post("/sites", site, OTHER);
    expect(await hub.call("POST", "/sites", { body: site, ...OTHER })).toMatchObject({ status: 409 });
  });

  test("as many file triggers as its limit says, of which deleted ones do not count", async () => {
    const create = () =>
      hub.call("POST", "/fileTrigger", { body: { mapping: "free", fileNamePatternMatches: [pattern] } });
    const pattern = { filterType: "EndsWith", value: ".csv" };
    const made = await Promise.all(Array.from({ length: 4 }, create));
    expect(made.map(({ status }) => status).toSorted()).toEqual([200, 200, 409, 409]);
    const words = "an account may have 2 file triggers, and this one would have more (`triggers`";
    expect(await create()).toMatchObject({ status: 409, body: { detail: expect.stringContaining(words) } });
    const [first] = made.filter(({ status }) => status === 200);
    await hub.call("DELETE", "/fileTrigger", { query: { ids: first?.body } });
    expect((await create()).status).toBe(200);
  });

  test("as many in files of master data, whose rows beyond it are refused", async () => {
    const content = ["site_name;site_typeId;site_timeZoneId", "A;3;Europe/Paris", "B;3;Europe/Paris"].join("\n");
    const { status, body } = await hub.upload(content, { Filename: "sites.csv" });
    expect(status).toBe(200);
    const report = await hub.call("POST", `/storage/${body}/dryRun`);
    expect(report.body.rows).toMatchObject({ created: 0, refused: 2 });
    expect(report.body.items[0].reasons[0].message).toContain("an account may have 3 sites");
  });
});

test("an account has as many users as its limit says, by whichever way they come", async () => {
  const create = (username: string) =>
    hub.call("POST", "/account/users", { body: { username, password: "a-long-password" } });
  await hub.post("/account/invitations", { email: "eve@example.com", roles: ["User"] });
  // Four are in the settings of the hub.
  expect((await create("fifth")).status).toBe(200);
  const words = "an account may have 5 users";
  expect(await create("sixth")).toMatchObject({ status: 409, body: { detail: expect.stringContaining(words) } });
  const { body } = await hub.upload("user_name;user_roles\nsixth;User\nmanager;Manager\n", { Filename: "users.csv" });
  const { items } = (await hub.call("POST", `/storage/${body}/dryRun`)).body;
  expect(items).toMatchObject([{ reasons: [{ message: expect.stringContaining(words) }] }, { result: "unchanged" }]);
  const browser = openBrowser(hub);
  const link = await box.linkTo("eve@example.com", "/invitation");
  await browser.open(pathOf(link));
  const { html } = await browser.send("/invitation", { token: tokenOf(link), username: "eve" });
  expect(html).toContain("First has as many users as it may have");
  const { id } = (await hub.get("/user/users")).find((one: { username: string }) => one.username === "fifth");
  expect(await hub.call("DELETE", `/account/users/${id}`)).toMatchObject({ status: 204 });
  const again = await browser.send("/invitation", { token: tokenOf(link), username: "eve" });
  expect(again.html).toContain("You have accepted the invitation");
});

describe("alarms", () => {
  const template = (variableIds: readonly number[]) => ({
    name: "High",
    selection: { variableIds },
    condition: { kind: "Above", set: 10 },
  });
  const create = (variableIds: readonly number[]) =>
    hub.call("POST", "/alarms/template", { body: template(variableIds) });

  test("and their templates have limits, too", async () => {
    const ids = ((await hub.get("/variables")) as { id: number }[]).map(({ id }) => id);
    expect(await create(ids)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("an account may have 3 alarms") },
    });
    const first = await create(ids.slice(0, 2));
    expect(first).toMatchObject({ status: 200 });
    expect(await create(ids.slice(0, 2))).toMatchObject({ status: 409 });
    expect(await create(ids.slice(0, 1))).toMatchObject({ status: 200 });
    expect(await create([])).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("an account may have 2 alarm templates") },
    });
    await until(async () => ((await hub.get("/alarms")).length === 3 ? true : undefined));
    const url = `/alarms/template/${first.body}`;
    expect(await hub.call("PUT", url, { body: template(ids) })).toMatchObject({ status: 409 });
    expect(await hub.call("PUT", url, { body: template(ids.slice(1, 3)) })).toMatchObject({ status: 200 });
  });
});

describe("lists without pages are short, since there are at most", () => {
  test.each([
    [200, "claims of a user"],
    [100, "personal tokens of a user"],
    [500, "comments of an alarm"],
  ])("%i %s", async (most, what) => {
    const [alarm] = (await hub.get("/alarms")) as { id: number }[];
    const add = (at: number) => {
      if (what === "claims of a user")
        return hub.call("PUT", `/account/users/1/claims/claim-${at}`, { body: { claimValue: "1" } });
      if (what === "comments of an alarm")
        return hub.call("POST", `/alarms/${alarm?.id}/comments`, { body: { text: "Seen." } });
      return hub.call("POST", "/user/tokens", { body: { name: `Token ${at}`, days: 1 } });
    };
    for (let at = 0; at < most; at += 1) expect((await add(at)).status).toBe(200);
    expect(await add(most)).toMatchObject({ status: 409, body: { code: "quota-exceeded" } });
  });
});
