/** The ways in which a user of account 1 becomes a former one, and what such a user had opened before. */
import { request } from "node:http";
import { openBrowser, type TestBrowser } from "../browser.ts";
import type { TestHub } from "../fixture.ts";
import { pathOf, tokenOf } from "../mail/mail-box.ts";

export interface Person {
  readonly name: string;
  readonly id: number;
  readonly email: string;
  /** Of account 1 alone, with a lower role. */
  readonly other: { readonly name: string; readonly id: number };
  /** A session that may change the password; absent: one begins for it. */
  session?: TestBrowser;
}

type Loss = (hub: TestHub, person: Person) => Promise<unknown>;

const WORDS = "another three words";
const MANAGER = { as: "manager" };

/** Changes by the interface and pages, as a manager or the user makes them. */
export const LOSSES = {
  deactivation: (hub, { id }) => done(hub, "POST", `/account/users/${id}/deactivate`),
  "the state Inactive": (hub, { id }) => done(hub, "PUT", `/account/users/${id}`, { state: "Inactive" }),
  "a lost role": (hub, { id }) => done(hub, "PUT", `/account/users/${id}/roles`, ["User"]),
  "a password by a manager's link": async (hub, { id }) => {
    const { link } = await hub.get("/user/updatePasswordLink", { UserId: id }, MANAGER);
    const browser = openBrowser(hub);
    await browser.open(pathOf(link));
    const sent = await browser.send("/password/reset", { token: tokenOf(link), password: WORDS, again: WORDS });
    if (sent.status !== 200) throw new Error(sent.html);
  },
  "a password of the own": async (hub, person) => {
    const browser = person.session ?? openBrowser(hub);
    if (person.session === undefined) await browser.signIn(person.name);
    await browser.open("/password/change");
    const fields = { current: `${person.name}-password`, password: WORDS, again: WORDS };
    const sent = await browser.send("/password/change", fields);
    if (sent.path !== "/me?done=password") throw new Error(sent.html);
  },
  "an account left": (hub, { id }) => done(hub, "DELETE", `/account/users/${id}`),
} as const satisfies Record<string, Loss>;

export type LossName = keyof typeof LOSSES;
export const LOSS_NAMES = Object.keys(LOSSES) as readonly LossName[];

async function done(hub: TestHub, method: string, path: string, body?: unknown): Promise<void> {
  const answer = await hub.call(method, path, { ...MANAGER, ...(body === undefined ? {} : { body }) });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Users of the configuration: one for each use and loss. A user who leaves account 1 belongs to 2, too. */
export function usersFor(uses: readonly string[]): object[] {
  return uses.flatMap((_, use) =>
    LOSS_NAMES.flatMap((loss, nth) => {
      const user = (username: string, accounts: readonly number[], roles: readonly string[]) => ({
        ...{ username, password: `${username}-password`, email: `${username}@example.com` },
        ...{ accounts: [...accounts], roles: [...roles] },
      });
      const name = nameFor(use, nth);
      const accounts = loss === "an account left" ? [1, 2] : [1];
      return [user(name, accounts, ["Manager"]), user(`${name}-other`, [1], ["User"])];
    }),
  );
}

export async function personFor(
  { idOf }: { idOf(username: string): Promise<number> },
  use: number,
  loss: LossName,
): Promise<Person> {
  const name = nameFor(use, LOSS_NAMES.indexOf(loss));
  const other = { name: `${name}-other`, id: await idOf(`${name}-other`) };
  return { name, id: await idOf(name), email: `${name}@example.com`, other };
}

function nameFor(use: number, nth: number): string {
  return `former-${use}-${nth}`;
}

/** A request whose body is sent in two parts: the second one by `finish`, which answers the status. */
export function begunRequest(
  url: string,
  { method, headers, body }: { method: string; headers: Record<string, string>; body: Uint8Array },
): { finish(): Promise<number> } {
  const middle = Math.floor(body.length / 2);
  const sent = request(url, { method, headers: { ...headers, "content-length": String(body.length) } });
  const status = new Promise<number>((resolve, reject) => {
    sent.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
  });
  status.catch(() => undefined);
  sent.write(body.subarray(0, middle));
  return {
    finish() {
      sent.end(body.subarray(middle));
      return status;
    },
  };
}
