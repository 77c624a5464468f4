/** Account 1 holds one of everything, with texts that no other account may see. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addDispatch } from "#hub/store/alarms/dispatches.ts";
import { addBlocks } from "#hub/store/blocks/blocks.ts";
import { change, insert } from "#hub/store/database.ts";
import { addEvents } from "#hub/store/events/events.ts";
import { addApiToken } from "#hub/store/people/api-tokens.ts";
import { putClaim } from "#hub/store/people/people.ts";
import type { HubStore } from "#hub/store/store.ts";
import { SCOPES } from "#wire/index.ts";
import { openBrowser } from "../browser.ts";
import { createChain, GRANT, type TestHub, until } from "../fixture.ts";

/** In every text of account 1 that a request does not name. */
export const HIDDEN = "hidden-7f3a";
export const VALUE = 424_242.125;
export const DATE = "2026-03-01T00:00:00Z";
/** What requests of others name: theirs it is not. */
export const NAMED = {
  text: "named-7f3a",
  serial: "WALL-1",
  ean: "5410000000017",
  meter: "WM-1",
  operation: "wall operation",
};
/** Of the file trigger. */
export const TOKEN = "5b1c1f4e-95d6-4b0f-9c2a-6a2f0d9d7c11";
/** The id of each thing of account 1, as in the examples of the routes. */
export const FIRST = 1;

/** The master data makes a second chain, with a report on its rows. */
const MASTER_DATA =
  "site_name;site_type;site_time_zone;source_serial_number;energy_type;mapping_config;unit;granularity;quantity_type\n" +
  `${HIDDEN} 2;Office;Europe/Brussels;${HIDDEN};Electricity;kWh;kWh;15 minutes;Integrated\n`;

export async function holdEverything(hub: TestHub): Promise<void> {
  const ids = [
    ...(await structure(hub)),
    ...(await selections(hub)),
    await invitation(hub),
    await trigger(hub),
    await stored(hub),
  ];
  await pushed(hub);
  ids.push(...(await alarms(hub)));
  const others = ids.filter((id) => id !== FIRST);
  if (others.length > 0) throw new Error(`the examples name the ids ${FIRST}, and not ${others.join(", ")}`);
  await people(hub);
  await calculated(hub);
  await signedIn(hub);
}

/** With a refresh token. */
async function signedIn(hub: TestHub): Promise<void> {
  const user = { username: "manager", password: "manager-password", account: String(FIRST) };
  const answer = await hub.form({ ...GRANT, ...user, scope: "datahub-api offline_access" });
  if (!answer.ok) throw new Error(await answer.text());
}

async function structure(hub: TestHub): Promise<number[]> {
  const { siteId, sourceId, variableIds } = await createChain(hub, {
    source: {
      name: NAMED.text,
      serialNumber: NAMED.serial,
      ean: NAMED.ean,
      meterNumber: NAMED.meter,
      description: HIDDEN,
      localisation: HIDDEN,
      tags: [NAMED.text, HIDDEN],
      clientData: { form: { group: { field: HIDDEN } } },
    },
    variables: [{ name: HIDDEN, mappingConfig: "kWh", isVersioned: true, tags: [NAMED.text, HIDDEN] }],
  });
  const address = { street: HIDDEN, postalCode: HIDDEN, city: HIDDEN };
  await hub.ok("PATCH", `/sites/${siteId}`, { body: { name: HIDDEN, ...address } });
  return [siteId, sourceId, ...variableIds];
}

async function selections(hub: TestHub): Promise<number[]> {
  const view = await hub.post("/views", { name: HIDDEN, entityType: "Site", customFilter: `Name = '${HIDDEN}'` });
  const group = await hub.post("/groups", { name: HIDDEN, siteIds: [FIRST] });
  const { text } = NAMED;
  const fields = [
    { name: text, type: "Number", timeSliced: true },
    { name: "Kept", options: [HIDDEN], type: "List" },
  ];
  const groups = [{ name: text, fields }];
  const slices = `/attributes/${text}/${text}/${text}/slices`;
  const slice = { FromDate: DATE, Value: VALUE };
  const form = await hub.post("/form", { name: text, groups });
  const hooked = {
    name: HIDDEN,
    active: false,
    types: ["file.state"],
    filter: { siteIds: [FIRST] },
    url: "http://127.0.0.1:1/x",
  };
  const subscribed = await hub.post("/events/subscriptions", hooked);
  const ofSource = await hub.post(`/sources/${FIRST}${slices}`, slice);
  await hub.post("/form", { name: text, entityType: "Site", groups });
  await hub.post(`/sites/${FIRST}${slices}`, slice);
  for (const path of [`/sources/${FIRST}`, `/sites/${FIRST}`])
    await hub.ok("PATCH", path, { body: { clientData: { [text]: { [text]: { Kept: HIDDEN } } } } });
  return [view, group, Number(form.id), ofSource.id, subscribed.id];
}

/** The mail of an invitation leaves by itself, and nothing changes afterwards. */
async function invitation(hub: TestHub): Promise<number> {
  const named = { firstName: HIDDEN, lastName: HIDDEN };
  const { id } = await hub.post("/account/invitations", { email: `${HIDDEN}@example.com`, ...named });
  const isSent = async () => (await hub.get("/account/invitations"))[0].mail === "sent" || undefined;
  await until(isSent);
  return id;
}

function trigger(hub: TestHub): Promise<number> {
  const body = { name: HIDDEN, ingestionType: "SendViaHttp", token: TOKEN, mapping: HIDDEN, metadata: { HIDDEN } };
  return hub.post("/fileTrigger", body);
}

/** The first stored file is one of master data. */
async function stored(hub: TestHub): Promise<number> {
  const fileName = `${NAMED.text}.csv`;
  const named = { Filename: `${HIDDEN}/${fileName}`, Tag: NAMED.text, SiteId: FIRST };
  const { body: fileId } = await hub.upload(MASTER_DATA, named);
  const path = join(hub.directory, "master-data.csv");
  await writeFile(path, MASTER_DATA);
  const facts = { accountId: 1, fileId, fileName, path, run: HIDDEN, settings: {} };
  const applied = await hub.inside().masterData.apply(facts, AbortSignal.timeout(60_000));
  if (applied.kind !== "applied") throw new Error(applied.words);
  return fileId;
}

async function people(hub: TestHub): Promise<void> {
  const { people: store, externalIdentities } = hub.inside().store as HubStore;
  const user = await store.userByName("plain");
  if (user === null) throw new Error("the fixture has a user `plain`");
  const times = { createdMs: 0, expiresMs: Date.parse("2100-01-01T00:00:00Z") };
  const browser = openBrowser(hub);
  await browser.signIn("plain");
  const names = { usernames: [HIDDEN], firstName: HIDDEN, lastName: HIDDEN };
  const granted = [{ accountId: 1, roles: ["User"] }];
  const actor = { id: null, name: HIDDEN, impersonator: null, address: null };
  const person = { issuer: HIDDEN, subject: HIDDEN, ...names, email: `${HIDDEN}@example.org`, granted };
  await externalIdentities.enter({ ...person, matchesEmail: false }, { atMs: 0, actor, confirmation: null });
  const message = () => ({ subject: HIDDEN, text: HIDDEN, html: HIDDEN });
  const confirmation = { hash: HIDDEN, expiresMs: times.expiresMs, message };
  const another = { ...person, subject: `other ${HIDDEN}`, matchesEmail: true };
  await externalIdentities.enter(another, { atMs: 0, actor, confirmation });
  await store.change(function* () {
    yield* putClaim(1, { userId: user.id, type: NAMED.text, value: HIDDEN });
    yield* addApiToken({ userId: user.id, accountId: 1, name: HIDDEN, hash: HIDDEN, scopes: SCOPES, ...times });
    const subject = { kind: "site", id: FIRST, name: HIDDEN } as const;
    yield* addEvents([{ accountId: 1, type: "structure.changed", subject, atMs: 0, facts: { HIDDEN } }]);
  });
}

async function calculated(hub: TestHub): Promise<void> {
  const { people: store } = hub.inside().store as HubStore;
  const own = { account_id: FIRST, variable_id: FIRST };
  const period = { from_ms: 0, to_ms: 0, marked_ms: 0 };
  const run = { state: "done", due: "[]", default_version: HIDDEN, node: HIDDEN, lease_ms: 0, started_ms: 0 };
  await store.change(function* () {
    yield* change("INSERT INTO calculated_input VALUES (?, ?, ?, TRUE)", FIRST, FIRST, FIRST);
    yield* change("INSERT INTO calculated_field VALUES (?, 'site', ?, 1, ?)", FIRST, FIRST, FIRST);
    yield* change("INSERT INTO structure_before VALUES (?, ?, ?)", FIRST, FIRST, HIDDEN);
    yield* change("INSERT INTO calculation_missed VALUES (?, ?, 0, 0, 0)", FIRST, FIRST);
    yield* change("INSERT INTO rollup VALUES (?, ?, 0, 1, ?, ?)", FIRST, HIDDEN, HIDDEN, Buffer.from(HIDDEN));
    const dates = Float64Array.of(Date.parse(DATE) - 3_600_000);
    yield* addBlocks(FIRST, { atMs: dates, values: Float64Array.of(VALUE), origins: new Float64Array(1) });
    yield* insert("rolled_up", { ...own, until_ms: 1, writes: 0 });
    yield* insert("calculation_due", { ...own, ...period, cause: "force" });
    yield* insert("calculation", { ...own, ...period, ...run, message: HIDDEN });
  });
}

/** One that is present by what was pushed, with a webhook and a digest that wait. */
async function alarms(hub: TestHub): Promise<number[]> {
  const condition = { kind: "Above", set: VALUE };
  const template = await hub.post("/alarms/template", { name: HIDDEN, selection: { variableIds: [FIRST] }, condition });
  const view = await hub.post("/alarms/view", { name: HIDDEN, filter: { states: ["Present"] } });
  const found = await until(async () => (await hub.get("/alarms", { states: "Present" }))[0]);
  await hub.post(`/alarms/${found.id}/comments`, { text: HIDDEN });
  const { people: store } = hub.inside().store as HubStore;
  const nextMs = Date.parse("2100-01-01T00:00:00Z");
  const waits = { accountId: 1, kind: "webhook", target: `http://127.0.0.1:1/${HIDDEN}`, host: "127.0.0.1:1" } as const;
  await store.change(() => addDispatch({ ...waits, body: "{}", nextMs }));
  const digest = { account_id: 1, recipient: `${HIDDEN}@example.org`, subject: HIDDEN, recorded_ms: nextMs };
  await store.change(() => insert("alarm_digest", digest));
  return [template, view, found.id];
}

async function pushed(hub: TestHub): Promise<void> {
  const query = { operationId: NAMED.operation };
  const data = [{ date: DATE, value: VALUE, version: NAMED.text, tags: { note: HIDDEN } }];
  const nobodys = { sourceSerialNumber: HIDDEN, mappingConfig: HIDDEN, data };
  const headers = { "x-trace-link": `https://${HIDDEN}.example.org/` };
  await hub.ok("POST", "/push/api/data", { query, headers, body: [{ variableId: FIRST, data }, nobodys] });
  await hub.settled(NAMED.operation);
}
