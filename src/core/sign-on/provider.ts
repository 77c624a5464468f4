/** A provider of OpenID Connect: authorization code with PKCE, state and nonce. */
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  clockTolerance,
  discovery,
  fetchUserInfo,
  None,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  WWWAuthenticateChallengeError,
} from "openid-client";
import type { ProviderSettings } from "./options.ts";

/** Values that the answer of the provider is checked against. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface SignedOn {
  readonly issuer: string;
  /** Unique and never given to another person by its issuer. */
  readonly subject: string;
  readonly claims: Claims;
}

/** Each method throws `SignOnFault`. */
export interface ProviderClient<Settings extends ProviderSettings = ProviderSettings> {
  readonly settings: Settings;
  /** Address for the browser. `isOther`: the provider asks who it is, also when a person has signed in there. */
  begin(redirectUri: string, isOther?: boolean): Promise<{ readonly url: string; readonly checks: Checks }>;
  /** `callback`: the redirect URI with what the provider added. */
  finish(callback: URL, checks: Checks): Promise<SignedOn>;
  /** Whether the provider can be found: its discovery, asked for again. */
  discover(): Promise<void>;
}

/** Characters of a name. */
const NAME_CHARACTERS_MAX = 200;

/** Clocks of this machine and the provider may differ by so much. */
const CLOCKS_SEC = 60;
/** The provider's addresses and keys may change. */
const KNOWN_MS = 3_600_000;
/** Errors of a token request (RFC 6749, 5.2) that a person here or at the provider has to mend. */
const SETTINGS = ["invalid_client", "unauthorized_client", "invalid_scope", "unsupported_grant_type"];

const AWAY = /\b(TimeoutError|AbortError|OAUTH_TIMEOUT|UND_ERR_\w+|E(CONN|HOST|NET|AI_|NOTFOUND|PIPE|TIMEDOUT)\w*)/;

export function createProviderClient<Settings extends ProviderSettings>(
  settings: Settings,
  nowMs = () => performance.now(),
): ProviderClient<Settings> {
  const { name, scopes } = settings;
  let known: { readonly configuration: Configuration; readonly untilMs: number } | null = null;
  let asking: Promise<Configuration> | null = null;
  const ask = async (): Promise<Configuration> => {
    const configuration = await discovered(settings);
    known = { configuration, untilMs: nowMs() + KNOWN_MS };
    return configuration;
  };
  /** Without an answer the next caller asks again; an older answer is better than none. */
  const found = async (): Promise<Configuration> => {
    if (known !== null && known.untilMs > nowMs()) return known.configuration;
    asking ??= ask().finally(() => {
      asking = null;
    });
    const older = known?.configuration;
    return await (older === undefined ? asking : asking.catch(() => older));
  };
  return {
    settings,
    begin: (redirectUri, isOther = false) =>
      explained(name, async () => {
        const configuration = await found();
        const checks = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
        const url = buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: scopes.join(" "),
          state: checks.state,
          nonce: checks.nonce,
          code_challenge: await calculatePKCECodeChallenge(checks.verifier),
          code_challenge_method: "S256",
          ...(isOther ? { prompt: "login" } : {}),
        });
        return { url: url.href, checks };
      }),
    finish: (callback, { state, nonce, verifier }) =>
      explained(name, async () => {
        if (callback.searchParams.get("state") !== state)
          throw new SignOnFault("expired", `the answer of ${name} belongs to another attempt`);
        const configuration = await found();
        const expected = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
        const tokens = await authorizationCodeGrant(configuration, callback, { ...expected, idTokenExpected: true });
        const own = tokens.claims();
        if (own === undefined) throw new SignOnFault("provider", `${name} sent no ID token`);
        const { issuer, userinfo_endpoint: endpoint } = configuration.serverMetadata();
        // Many providers have e-mail and groups here alone.
        const more = endpoint === undefined ? {} : await fetchUserInfo(configuration, tokens.access_token, own.sub);
        return { issuer, subject: own.sub, claims: { ...more, ...own } };
      }),
    discover: () => explained(name, async () => void (await ask())),
  };
}

/**
 * Where the provider leads people back to; it has to know this address. `base`: of this server; `signIn`: path of its
 * sign-in page.
 */
export function redirectUriOf({ name }: Pick<ProviderSettings, "name">, base: string, signIn = "/sign-in"): string {
  return `${base.replace(/\/+$/, "")}${signIn}/oidc/${name}/callback`;
}

function discovered(settings: ProviderSettings): Promise<Configuration> {
  const { issuer, clientId, clientSecret, clientAuthentication, timeout } = settings;
  const url = new URL(issuer);
  const authentication =
    clientSecret === undefined
      ? None()
      : clientAuthentication === "basic"
        ? ClientSecretBasic(clientSecret)
        : ClientSecretPost(clientSecret);
  return discovery(url, clientId, { [clockTolerance]: CLOCKS_SEC }, authentication, {
    timeout: Math.max(1, Math.ceil(timeout / 1_000)),
    // The settings let nothing but loopback be without TLS.
    ...(url.protocol === "http:" ? { execute: [allowInsecureRequests] } : {}),
  });
}

async function explained<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw faultOf(name, thrown);
  }
}

function faultOf(name: string, thrown: unknown): SignOnFault {
  if (thrown instanceof SignOnFault) return thrown;
  if (thrown instanceof AuthorizationResponseError) {
    const words = [thrown.error, thrown.error_description].filter((one) => one !== undefined).join(": ");
    if (thrown.error === "access_denied") return new SignOnFault("declined", `${name} answers ${words}`);
    const kind = SETTINGS.includes(thrown.error) || thrown.error === "invalid_request" ? "settings" : "provider";
    return new SignOnFault(kind, `${name} answers ${words}`);
  }
  if (thrown instanceof ResponseBodyError) {
    const words = [thrown.error, thrown.error_description].filter((one) => one !== undefined).join(": ");
    // The code was used before, or is too old: a page that was loaded again.
    const kind =
      thrown.error === "invalid_grant" ? "expired" : SETTINGS.includes(thrown.error) ? "settings" : "provider";
    return new SignOnFault(kind, `${name} refuses the token request: ${words}`);
  }
  if (thrown instanceof WWWAuthenticateChallengeError)
    return new SignOnFault("settings", `${name} refuses the client id or secret (${thrown.status})`);
  const kind = isAway(thrown) ? "provider" : "settings";
  return new SignOnFault(kind, `${name} does not answer as a provider of OpenID Connect: ${chainOf(thrown)}`);
}

/** No answer, or one by which the provider is at fault itself: the same may succeed later. */
function isAway(thrown: unknown): boolean {
  for (let at = thrown; typeof at === "object" && at !== null; at = "cause" in at ? at.cause : null) {
    if (at instanceof Response) return at.status >= 500 || at.status === 429;
    if (at instanceof Error && AWAY.test(`${at.name} ${"code" in at ? at.code : ""}`)) return true;
  }
  return false;
}

/** Words alone: causes of the library hold whole answers, with what must not be in a log. */
function chainOf(thrown: unknown): string {
  const words: string[] = [];
  for (let at = thrown; at instanceof Error; at = at.cause)
    if (at.message !== "" && !words.includes(at.message)) words.push(at.message);
  return words.join(": ");
}

/** Why a person could not be signed in by a provider. */
export type SignOnFaultKind =
  /** The provider does not answer, or not as it should. */
  | "provider"
  /** This side and the provider do not agree on their settings. */
  | "settings"
  /** The person declined, or the provider does not let that person in. */
  | "declined"
  /** The attempt took too long, was finished before, or began in another browser. */
  | "expired"
  | "unknown-user"
  | "name-taken"
  | "inactive"
  | "no-account";

export class SignOnFault extends Error {
  readonly kind: SignOnFaultKind;

  /** `message` is for the log. */
  constructor(kind: SignOnFaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SignOnFault";
    this.kind = kind;
  }
}

/** The claims of a person whom a provider of single sign-on signed in. */
export type Claims = Readonly<Record<string, unknown>>;

/** A claim of this very name comes before a path: providers use addresses as names. */
export function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split(".").reduce<unknown>((at, part) => {
    if (typeof at !== "object" || at === null || Array.isArray(at) || !Object.hasOwn(at, part)) return undefined;
    return (at as Claims)[part];
  }, claims);
}

/** A text among the claims; null when there is none. */
export function textOf(claims: Claims, name: string): string | null {
  const value = claimOf(claims, name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}

/** A text that may name a person: neither long nor with control characters. */
export function nameOf(claims: Claims, name: string): string | null {
  const found = textOf(claims, name);
  return found === null || found.length > NAME_CHARACTERS_MAX || /\p{Cc}/u.test(found) ? null : found;
}

interface ClaimRule {
  /** All people when absent. */
  readonly claim?: string | undefined;
  /** The claim must be this value, or a list that holds it; when absent, it must be there and not false. */
  readonly value?: string | number | boolean | undefined;
}

export function fits({ claim, value }: ClaimRule, claims: Claims): boolean {
  return claim === undefined || isClaimed(claimOf(claims, claim), value);
}

function isClaimed(claimed: unknown, value: ClaimRule["value"]): boolean {
  if (value === undefined) return !isNothing(claimed);
  const all = Array.isArray(claimed) ? claimed : [claimed];
  return all.some((one) => ["string", "number", "boolean"].includes(typeof one) && String(one) === String(value));
}

function isNothing(claimed: unknown): boolean {
  if (claimed === undefined || claimed === null || claimed === false || claimed === "") return true;
  return Array.isArray(claimed) && claimed.length === 0;
}
