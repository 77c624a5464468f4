/** A provider of OpenID Connect (oidc-provider) on this machine, at which any login with any password is right. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

export const CLIENT = { id: "hub", secret: "secret of the hub at the provider" };

export interface RealProvider {
  readonly issuer: string;
  /** By login; a login without claims of its own has `sub` alone. */
  readonly people: Map<string, Readonly<Record<string, unknown>>>;
  /** Nobody listens. */
  stop(): Promise<void>;
  /** At the same address. */
  start(): Promise<void>;
  /** A person signs in at the address to which the hub led; returns where the provider leads back to. */
  signIn(url: string, login: string): Promise<URL>;
  /** A person who declines. */
  decline(url: string): Promise<URL>;
}

export async function startProvider(redirectUris: readonly string[]): Promise<RealProvider> {
  const server = createServer();
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  const people: RealProvider["people"] = new Map();
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [...redirectUris],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    claims: {
      openid: ["sub"],
      profile: ["preferred_username", "given_name", "family_name"],
      email: ["email", "email_verified"],
      groups: ["groups"],
    },
    scopes: ["openid", "profile", "email", "groups"],
    pkce: { required: () => true },
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig" }] },
    cookies: { keys: ["a key of the cookies"] },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...people.get(sub), sub }) }),
  });
  server.on("request", provider.callback());
  return {
    issuer,
    people,
    start: () => listen(port),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    signIn: (url, login) => walk(url, issuer, { prompt: "login", login, password: "any" }),
    decline: (url) => walk(url, issuer, null),
  };
}

/** As a browser without scripts: follows redirects, keeps cookies, and fills in the forms. */
async function walk(url: string, issuer: string, login: Record<string, string> | null): Promise<URL> {
  const cookies = new Map<string, string>();
  const visit = async (to: string, form?: Record<string, string>): Promise<URL | string> => {
    const response = await fetch(to, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [name = "", value = ""] = cookie.split(";")[0]?.split("=") ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    const text = await response.text();
    if (location !== null) return new URL(location, to);
    if (response.ok) return text;
    throw new Error(`the provider answers ${response.status}: ${text.slice(0, 500)}`);
  };
  let at: URL | string = new URL(url);
  for (let steps = 0; steps < 20; steps += 1) {
    if (at instanceof URL) {
      if (at.origin !== issuer) return at;
      at = await visit(at.href);
      continue;
    }
    const cancel = /href="([^"]+\/abort)"/.exec(at)?.[1];
    const action = /action="([^"]+)"/.exec(at)?.[1] ?? "";
    if (login === null) at = await visit(new URL(cancel ?? "", issuer).href);
    else at = await visit(new URL(action, issuer).href, /name="login"/.test(at) ? login : { prompt: "consent" });
  }
  throw new Error("the provider leads nowhere");
}
