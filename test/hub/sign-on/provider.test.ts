/** The hub's side of OpenID Connect, at a real provider. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProviderClient, type ProviderClient } from "#core/sign-on/provider.ts";
import { type OidcProvider, signInOptions } from "#hub/sign-on/options.ts";
import { CLIENT, type RealProvider, startProvider } from "./real-provider.ts";

const CALLBACK = "https://hub.example.org/sign-in/oidc/company/callback";
const ANN = { email: "ann@example.org", email_verified: true, preferred_username: "ann", groups: ["managers"] };

let provider: RealProvider;
let client: ProviderClient;
beforeAll(async () => {
  provider = await startProvider([CALLBACK]);
  provider.people.set("ann", ANN);
  client = createProviderClient(settingsOf());
});
afterAll(() => provider.stop());

function settingsOf(more: object = {}): OidcProvider {
  const own = { name: "company", label: "Company", issuer: provider.issuer };
  const { id: clientId, secret: clientSecret } = CLIENT;
  const scopes = ["openid", "profile", "email", "groups"];
  const [settings] = signInOptions.parse({ oidc: [{ ...own, clientId, clientSecret, scopes, ...more }] }).oidc;
  if (settings === undefined) throw new Error("the options have no provider");
  return settings;
}

/** Another callback than the one that the provider knows is never led back to. */
const begun = async (own = client) => await own.begin(CALLBACK);
const fault = (kind: string, words: RegExp) => expect.objectContaining({ kind, message: expect.stringMatching(words) });

describe("a sign-in at the provider", () => {
  test("leads to issuer, subject, and the claims of the ID token and of the provider's interface", async () => {
    const { url, checks } = await begun();
    const asked = new URL(url).searchParams;
    expect(asked.get("code_challenge_method")).toBe("S256");
    expect(asked.get("scope")).toBe("openid profile email groups");
    const person = await client.finish(await provider.signIn(url, "ann"), checks);
    expect(person).toMatchObject({ issuer: provider.issuer, subject: "ann", claims: ANN });
  });

  test("works with the secret in the form, too", async () => {
    const own = createProviderClient(settingsOf({ clientAuthentication: "post" }));
    const { url, checks } = await begun(own);
    expect(await own.finish(await provider.signIn(url, "ann"), checks)).toMatchObject({ subject: "ann" });
  });

  test("is new each time", async () => {
    const [one, other] = [await begun(), await begun()];
    for (const name of ["state", "nonce", "verifier"] as const) expect(one.checks[name]).not.toBe(other.checks[name]);
  });

  test("counts once", async () => {
    const { url, checks } = await begun();
    const callback = await provider.signIn(url, "ann");
    await client.finish(callback, checks);
    await expect(client.finish(callback, checks)).rejects.toThrow(fault("expired", /invalid_grant/));
  });

  test.each([
    ["state", "expired", /belongs to another attempt/],
    ["nonce", "settings", /does not answer as a provider/],
    ["verifier", "expired", /invalid_grant/],
  ] as const)("does not count with the %s of another attempt", async (name, kind, words) => {
    const [{ url, checks }, other] = [await begun(), await begun()];
    const callback = await provider.signIn(url, "ann");
    await expect(client.finish(callback, { ...checks, [name]: other.checks[name] })).rejects.toThrow(
      fault(kind, words),
    );
  });

  test("that a person declines is told as such", async () => {
    const { url, checks } = await begun();
    await expect(client.finish(await provider.decline(url), checks)).rejects.toThrow(
      fault("declined", /access_denied/),
    );
  });

  test("with a wrong secret is a fault of the settings", async () => {
    const own = createProviderClient(settingsOf({ clientSecret: "another" }));
    const { url, checks } = await begun(own);
    await expect(own.finish(await provider.signIn(url, "ann"), checks)).rejects.toThrow(
      fault("settings", /refuses the client id or secret/),
    );
  });
});

describe("a provider", () => {
  test("that is down is asked again by the next attempt", async () => {
    const own = createProviderClient(settingsOf());
    await provider.stop();
    await expect(own.begin(CALLBACK)).rejects.toThrow(fault("provider", /does not answer/));
    await provider.start();
    expect((await own.begin(CALLBACK)).url).toContain(provider.issuer);
  });

  test("that is down an hour after it was found is known by what it said", async () => {
    let nowMs = 0;
    const own = createProviderClient(settingsOf(), () => nowMs);
    await own.begin(CALLBACK);
    await provider.stop();
    nowMs = 3_600_001;
    expect((await own.begin(CALLBACK)).url).toContain(provider.issuer);
    await expect(own.discover()).rejects.toThrow(fault("provider", /does not answer/));
    await provider.start();
    await own.discover();
  });

  test("of another issuer than configured is not taken", async () => {
    const issuer = provider.issuer.replace("127.0.0.1", "localhost");
    await expect(createProviderClient(settingsOf({ issuer })).discover()).rejects.toThrow(fault("settings", /company/));
  });
});
