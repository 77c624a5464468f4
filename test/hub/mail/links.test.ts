/** Links that work once, until their time is over; and where mails cannot leave. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { createCarrier } from "#hub/mail/carrier.ts";
import { hashOfToken, newLinkSecret, temporaryPassword } from "#hub/mail/mail.ts";
import { hubOptions } from "#hub/options.ts";
import { addLink, claimLink, endLinks } from "#hub/store/mail/links.ts";
import { openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { rawOptions, temporaryDirectory } from "../fixture.ts";

let store: HubStore;
let remove: () => Promise<void>;
beforeEach(async () => {
  const directory = await temporaryDirectory();
  remove = directory.remove;
  store = await openStore(hubOptions.parse(rawOptions(directory.path)).store, createLog("silent"));
});
afterEach(async () => {
  await store.close();
  await remove();
});

async function made(subjectId = 7): Promise<string> {
  const { token, hash } = newLinkSecret();
  const link = { purpose: "reset", subjectId, hash, createdMs: 1_000, expiresMs: 2_000 } as const;
  await store.people.change(() => addLink(link));
  return hashOfToken(token);
}

const claim = (hash: string, nowMs: number, purpose: "reset" | "invitation" = "reset") =>
  store.people.change(() => claimLink(purpose, hash, nowMs));

test("a link is used once, however many ask at one time, and only for its purpose", async () => {
  const hash = await made();
  expect(await claim(hash, 1_500, "invitation")).toBeNull();
  expect(await store.links.find("reset", hash, 1_500)).toBe(7);
  const claims = await Promise.all([1, 2, 3, 4].map(() => claim(hash, 1_500)));
  expect(claims.filter((link) => link?.subjectId === 7)).toHaveLength(1);
  expect(await store.links.find("reset", hash, 1_500)).toBeNull();
});

test("a link whose time is over, or that was ended, is neither found nor used", async () => {
  const [late, ended, other] = [await made(), await made(8), await made(9)];
  await store.people.change(() => endLinks("reset", 8, 1_500));
  for (const [hash, nowMs] of [
    [late, 2_000],
    [ended, 1_600],
    [hashOfToken("unknown"), 1_600],
  ] as const) {
    expect(await store.links.find("reset", hash, nowMs)).toBeNull();
    expect(await claim(hash, nowMs)).toBeNull();
  }
  expect(await claim(other, 1_999)).toEqual({ subjectId: 9, isMailed: false });
});

test("temporary passwords differ, and are easy to type", () => {
  const passwords = Array.from({ length: 100 }, temporaryPassword);
  expect(new Set(passwords).size).toBe(100);
  for (const password of passwords) expect(password).toMatch(/^[a-kmnp-z2-9]{4}(?:-[a-kmnp-z2-9]{4}){3}$/);
});

test("hubs that share a database have no folder for mails by default, and send none", () => {
  const { mail } = hubOptions.parse({ store: { kind: "sqlite", path: "x" } });
  const shared = { kind: "postgres", url: "postgres://a@b/c", schema: "s", pool: 1, connectTimeout: 1 } as const;
  expect(createCarrier({ mail, store: shared })).toBeNull();
  expect(createCarrier({ mail: { ...mail, outbox: "/somewhere" }, store: shared })).not.toBeNull();
});

test("with a server the public address of the hub is required, and both parts of a sign-in", () => {
  const parse = (more: object) => hubOptions.safeParse({ store: { kind: "sqlite", path: "x" }, ...more }).error?.issues;
  const smtp = { host: "mail.example.com" };
  expect(parse({ mail: { smtp } })).toMatchObject([{ path: ["publicUrl"] }]);
  expect(parse({ publicUrl: "https://hub.example.com", mail: { smtp } })).toBeUndefined();
  const half = { publicUrl: "https://hub.example.com", mail: { smtp: { ...smtp, username: "u" } } };
  expect(parse(half)).toMatchObject([{ path: ["mail", "smtp", "password"] }]);
});
