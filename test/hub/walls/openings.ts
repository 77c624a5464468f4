/** What a user can have opened in account 1 before a loss, beside the routes: each says whether it still works. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Secret, TOTP } from "otpauth";
import { notifiedOf } from "#hub/alarms/notices.ts";
import { setProven } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "../browser.ts";
import { GRANT, multipartOf, type TestHub } from "../fixture.ts";
import { type MailBox, pathOf, tokenOf } from "../mail/mail-box.ts";
import { DATE, FIRST, HIDDEN } from "./held.ts";
import { begunRequest, type LossName, type Person } from "./losses.ts";

/** Answers whether it still works, after the loss. */
type Again = () => Promise<boolean>;

interface Opening {
  /** Losses after which it still works. */
  readonly works: readonly LossName[];
  readonly open: (place: Place) => Promise<Again>;
}

interface Place {
  readonly hub: TestHub;
  readonly box: MailBox;
  readonly person: Person;
}

const ROLE = ["a lost role"] as const;
const PASSWORDS = ["a password by a manager's link", "a password of the own"] as const;
const LEFT = ["an account left"] as const;
const ALL = ["deactivation", "the state Inactive", ...ROLE, ...PASSWORDS, ...LEFT] as const;
/** A request is admitted again after a second (`access.ts`). */
const LASTING_MS = 1_100;

const storeOf = (hub: TestHub) => hub.inside().store as HubStore;
const bearer = async (hub: TestHub, { name }: Person) => ({ authorization: `Bearer ${await hub.token(name)}` });
const isOpen = async (hub: TestHub, path: string) => (await openBrowser(hub).open(path)).status === 200;

async function granted(hub: TestHub, { name }: Person, fields: Record<string, string>): Promise<Response> {
  const user = { username: name, password: `${name}-password`, account: "1" };
  return hub.form({ ...GRANT, scope: "datahub-api offline_access", ...user, ...fields });
}

export const OPENINGS: Readonly<Record<string, Opening>> = {
  "a refresh token": {
    works: ROLE,
    async open({ hub, person }) {
      const { refresh_token = "" } = (await (await granted(hub, person, {})).json()) as Record<string, string>;
      const fields = { grant_type: "refresh_token", refresh_token };
      return async () => (await hub.form({ ...GRANT, ...fields })).ok;
    },
  },
  "the password at the token interface": {
    works: ROLE,
    open: async ({ hub, person }) => {
      return async () => (await granted(hub, person, {})).ok;
    },
  },
  "the password in a browser": {
    works: ROLE,
    open: async ({ hub, person }) => {
      return async () => {
        const browser = openBrowser(hub);
        await browser.signIn(person.name);
        return await isInAccount(hub, browser.script());
      };
    },
  },
  "a sign-in that waits for its second factor": {
    works: ROLE,
    async open({ hub, person }) {
      const session = openBrowser(hub);
      await session.signIn(person.name);
      const { html } = await session.open("/me/second-factor/set-up");
      const secret = (/class="secret">([A-Z2-7 ]+)</.exec(html)?.[1] ?? "").replaceAll(" ", "");
      const totp = new TOTP({ secret: Secret.fromBase32(secret) });
      await session.send("/me/second-factor/set-up", { code: totp.generate() });
      person.session = session;
      const browser = openBrowser(hub);
      if ((await browser.signIn(person.name)).path !== "/sign-in/code") throw new Error("no code is asked for");
      return async () => {
        await browser.send("/sign-in/code", { code: totp.generate({ timestamp: Date.now() + 30_000 }) });
        return await isInAccount(hub, browser.script());
      };
    },
  },
  "a link to a new password that was mailed": {
    works: [...ROLE, ...LEFT],
    async open({ hub, box, person }) {
      const browser = openBrowser(hub);
      await browser.open("/password/forgot");
      await browser.send("/password/forgot", { username: person.name });
      const path = pathOf(await box.linkTo(person.email, "/password/reset"));
      return () => isOpen(hub, path);
    },
  },
  "a link to the own password": {
    works: [...ROLE, ...LEFT],
    async open({ hub, person }) {
      const path = pathOf((await hub.get("/user/updatePasswordLink", {}, { as: person.name })).link);
      return () => isOpen(hub, path);
    },
  },
  "a link to the password of another user": {
    works: [],
    async open({ hub, person }) {
      const asked = { UserId: person.other.id };
      const path = pathOf((await hub.get("/user/updatePasswordLink", asked, { as: person.name })).link);
      return () => isOpen(hub, path);
    },
  },
  "a session in which the user acts as another": {
    works: [],
    async open({ hub, person }) {
      const browser = openBrowser(hub);
      await browser.signIn(person.name);
      await browser.open(`/people/${person.other.id}`);
      await browser.send(`/people/${person.other.id}/act-as`, {});
      const headers = browser.script();
      if (!(await isInAccount(hub, headers))) throw new Error("nobody acts as another user");
      return () => isInAccount(hub, headers);
    },
  },
  "an invitation that the user made": {
    works: PASSWORDS,
    async open({ hub, box, person }) {
      const email = `by-${person.email}`;
      await hub.post("/account/invitations", { email, roles: ["Manager"] }, { as: person.name });
      const link = await box.linkTo(email, "/invitation");
      return async () => {
        const browser = openBrowser(hub);
        await browser.open(pathOf(link));
        await browser.send("/invitation", { token: tokenOf(link), username: email });
        return (await storeOf(hub).people.userByName(email)) !== null;
      };
    },
  },
  "the confirmation of a person of single sign-on": {
    // The owner of the address confirms it, without regard to the password.
    works: [...ROLE, ...PASSWORDS, ...LEFT],
    async open({ hub, person }) {
      const { people, externalIdentities } = storeOf(hub);
      await people.change(() => setProven(person.id, null));
      const hash = `confirms ${person.name}`;
      const actor = { id: null, name: "test", impersonator: null, address: null };
      const names = { usernames: [person.name], firstName: null, lastName: null, email: person.email };
      const known = { issuer: "test", subject: person.name, ...names, matchesEmail: true, granted: [] };
      const confirmation = { hash, expiresMs: Date.now() + 60_000, message: () => MESSAGE };
      await externalIdentities.enter(known, { atMs: Date.now(), actor, confirmation });
      return async () => (await externalIdentities.toConfirm(hash, Date.now())) !== null;
    },
  },
  "a wait for events": {
    works: ROLE,
    async open({ hub, person }) {
      const { last } = await hub.get("/events", { limit: 1 }, { as: person.name });
      const asked = { after: last, types: "structure.changed", waitSec: 30 };
      const waiting = hub.call("GET", "/events", { as: person.name, query: asked });
      return async () => {
        await hub.ok("PATCH", `/sources/${FIRST}`, { body: { description: `${HIDDEN} ${person.name}` } });
        const { status, body } = await waiting;
        return status === 200 && body.events.length > 0;
      };
    },
  },
  "an upload that is under way": {
    works: [],
    async open({ hub, person }) {
      const { raw, headers } = multipartOf("1;2\n");
      const path = `${hub.url()}/storage?Filename=${person.name}.csv`;
      const sent = { method: "POST", headers: { ...headers, ...(await bearer(hub, person)) }, body: raw };
      const begun = begunRequest(path, sent);
      return async () => (await begun.finish()) === 200;
    },
  },
  "a push that is under way": {
    works: [],
    async open({ hub, person }) {
      const body = Buffer.from(JSON.stringify([{ variableId: FIRST, data: [{ date: DATE, value: 7 }] }]));
      const headers = { "content-type": "application/json", ...(await bearer(hub, person)) };
      const begun = begunRequest(`${hub.url()}/push/api/data`, { method: "POST", headers, body });
      await setTimeout(LASTING_MS);
      return async () => (await begun.finish()) === 200;
    },
  },
  "a form of a page that is under way": {
    works: [],
    async open({ hub, person }) {
      const browser = openBrowser(hub);
      await browser.signIn(person.name);
      const { cookie = "", "x-csrf-token": csrf = "" } = browser.script();
      const email = `page-${person.email}`;
      const body = Buffer.from(String(new URLSearchParams({ csrf, email, roles: "User" })));
      const headers = { "content-type": "application/x-www-form-urlencoded", cookie };
      const begun = begunRequest(`${hub.url()}/people/invitations`, { method: "POST", headers, body });
      await setTimeout(LASTING_MS);
      return async () => {
        await begun.finish();
        const invited = (await hub.get("/account/invitations")) as { email: string }[];
        return invited.some((one) => one.email === email);
      };
    },
  },
  "a file of master data that waits": {
    works: PASSWORDS,
    async open({ hub, person }) {
      const fileName = `${person.name}.csv`;
      const content = `site_name;site_type;site_time_zone\n${person.name};Office;Europe/Brussels\n`;
      const { body: fileId } = await hub.upload(content, fileName, { as: person.name });
      const path = join(hub.directory, fileName);
      await writeFile(path, content);
      return async () => {
        const facts = { accountId: 1, fileId, fileName, path, run: person.name, settings: {} };
        const { kind } = await hub.inside().masterData.apply(facts, AbortSignal.timeout(60_000));
        return kind === "applied";
      };
    },
  },
  "mails about an alarm": {
    works: [...ROLE, ...PASSWORDS],
    async open({ hub, person }) {
      const condition = { kind: "Above", set: 1 };
      const notifications = { userIds: [person.id] };
      const body = { name: person.name, selection: { variableIds: [FIRST] }, condition, notifications };
      const templateId = await hub.post("/alarms/template", body);
      const alarm = async () => (await hub.get("/alarms", { templateIds: templateId }))[0];
      while ((await alarm()) === undefined) await setTimeout(20);
      const { id } = await alarm();
      return async () => (await notifiedOf(storeOf(hub), 1, [id])).get(id)?.recipients.includes(person.email) === true;
    },
  },
  // The account's own, and of its managers: who made it does not matter.
  "a subscription to events that the user made": {
    works: ALL,
    async open({ hub, person }) {
      const made = { name: person.name, types: ["file.state"], url: "http://127.0.0.1:1/x" };
      const { id } = await hub.post("/events/subscriptions", made, { as: person.name });
      return async () => (await hub.get(`/events/subscriptions/${id}`)).active === true;
    },
  },
};

const MESSAGE = { subject: "", text: "", html: "" };

async function isInAccount(hub: TestHub, headers: Record<string, string>): Promise<boolean> {
  const answer = await fetch(`${hub.url()}/account`, { headers });
  return answer.status === 200 && ((await answer.json()) as { id: number }).id === 1;
}
