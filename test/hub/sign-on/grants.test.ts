import { describe, expect, test } from "vitest";
import { claimOf, textOf } from "#core/sign-on/provider.ts";
import { signInOptions } from "#hub/sign-on/options.ts";
import { grantedBy } from "#hub/sign-on/person.ts";

const PROVIDER = { name: "company", label: "Company", issuer: "https://login.example.org", clientId: "hub" };
const parsed = (more: object) => signInOptions.safeParse({ oidc: [{ ...PROVIDER, ...more }] });
const granted = (grants: object[], claims: object) => {
  const [provider] = signInOptions.parse({ oidc: [{ ...PROVIDER, grants }] }).oidc;
  return Object.fromEntries(
    grantedBy(provider ?? { grants: [] }, { ...claims }).map(({ accountId, roles }) => [accountId, roles]),
  );
};

describe("claims give", () => {
  const MANAGERS = { claim: "groups", value: "managers", accounts: [1, 2], roles: ["Manager"] };

  test("roles in the accounts of each grant that holds, and none in those whose grants do not", () => {
    const grants = [MANAGERS, { claim: "groups", value: "pushers", accounts: [2, 3], roles: ["Datapusher"] }];
    expect(granted(grants, { groups: ["managers", "others"] })).toEqual({ 1: ["Manager"], 2: ["Manager"], 3: [] });
    expect(granted(grants, { groups: ["pushers", "managers"] })).toEqual({
      1: ["Manager"],
      2: ["Manager", "Datapusher"],
      3: ["Datapusher"],
    });
    expect(granted(grants, {})).toEqual({ 1: [], 2: [], 3: [] });
    expect(granted([], { groups: ["managers"] })).toEqual({});
  });

  test("the role User to everybody by a grant without a claim", () => {
    expect(granted([{ accounts: [7] }], {})).toEqual({ 7: ["User"] });
  });

  test.each([
    ["a text", { groups: "managers" }, true],
    ["a part of a text", { groups: "all-managers" }, false],
    ["another case", { groups: ["Managers"] }, false],
    ["an object", { groups: { managers: true } }, false],
    ["a list in a list", { groups: [["managers"]] }, false],
  ])("by %s", (_, claims, holds) => {
    expect(granted([MANAGERS], claims)[1]).toEqual(holds ? ["Manager"] : []);
  });

  test.each([
    [{ realm: { roles: ["a", "b"] } }, "realm.roles", "b", true],
    [{ "https://example.org/roles": ["b"] }, "https://example.org/roles", "b", true],
    [{ "realm.roles": "b", realm: { roles: "a" } }, "realm.roles", "b", true],
    [{ realm: ["roles"] }, "realm.0", "roles", false],
    [{ level: 3 }, "level", 3, true],
    [{ level: "3" }, "level", 3, true],
    [{ staff: true }, "staff", true, true],
    [{ staff: true }, "staff", undefined, true],
    [{ staff: false }, "staff", undefined, false],
    [{ staff: [] }, "staff", undefined, false],
    [{}, "constructor", undefined, false],
    [{}, "__proto__.constructor", undefined, false],
  ])("by %j, asked for %s = %s", (claims, claim, value, holds) => {
    const grant = { claim, accounts: [1], ...(value === undefined ? {} : { value }) };
    expect(granted([grant], claims)[1]).toEqual(holds ? ["User"] : []);
  });
});

test("texts of claims are trimmed, and others are none", () => {
  const claims = { name: " Ann ", empty: " ", number: 7, nested: { name: "Bo" } };
  expect(["name", "empty", "number", "missing", "nested.name"].map((name) => textOf(claims, name))).toEqual([
    "Ann",
    null,
    null,
    null,
    "Bo",
  ]);
  expect(claimOf(claims, "nested")).toEqual({ name: "Bo" });
});

describe("the configuration", () => {
  const words = (more: object) => parsed(more).error?.issues.map(({ message }) => message) ?? [];

  test("is short for a provider that people already know", () => {
    expect(parsed({}).data?.oidc[0]).toMatchObject({
      scopes: ["openid", "profile", "email"],
      createUsers: false,
      matchByEmail: false,
      usernameClaim: "preferred_username",
    });
  });

  test.each([
    [{ issuer: "http://login.example.org" }, /must be an https address/],
    [{ name: "Company Ltd" }, /lower-case letters/],
    [{ scopes: ["email"] }, /must hold openid/],
    [{ createUsers: true }, /must let people into an account/],
    [{ grants: [{ accounts: [1], value: "x" }] }, /is missing: `value`/],
    [{ grants: [{ accounts: [1], roles: ["Admin"] }] }, /Admin enters every account/],
    [{ grants: [{ accounts: [1], roles: ["Admin"], claim: "groups" }] }, /Admin enters every account/],
  ])("refuses %j", (more, expected) => {
    expect(words(more).join("\n")).toMatch(expected);
  });

  test("takes a provider on this machine without TLS, and Admin for one value of a claim", () => {
    expect(words({ issuer: "http://127.0.0.1:3000" })).toEqual([]);
    expect(words({ grants: [{ accounts: [1], roles: ["Admin"], claim: "groups", value: "operators" }] })).toEqual([]);
  });

  test("refuses two providers of one name", () => {
    const twice = signInOptions.safeParse({ oidc: [PROVIDER, PROVIDER] });
    expect(twice.error?.issues[0]?.message).toBe("two providers have the same name");
  });
});
