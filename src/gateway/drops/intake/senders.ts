/**
 * Authenticates senders: users and clients of the configuration, access tokens, and the check of each
 * request.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { jwtVerify, SignJWT } from "jose";
import { JOSEError } from "jose/errors";
import type { Clock } from "#core/clock.ts";
import { type Attempt, createSignInThrottle, type SignInLimits, type SignInThrottle } from "#core/sign-in/throttle.ts";
import { HttpProblem, unauthenticated } from "#wire/http-problem.ts";
import { authorizationOf, basicCredentials, checkApiVersion } from "#wire/request-authorization.ts";
import type { IntakeRight, IntakeUser } from "./options.ts";

const ALGORITHM = "HS256";
export const SECRET_BYTES = 32;
/** The service's texts for the rights. */
const RIGHT_WORDS: Readonly<Record<IntakeRight, string>> = {
  push: "Datapusher (push in the user's rights)",
  storage: "storage",
};
/** Compared with the secret of an unknown name, so that the comparison takes as long as for a known one. */
const DECOY = randomBytes(SECRET_BYTES).toString("hex");

export interface Grant {
  readonly username: string;
  readonly scopes: readonly string[];
  readonly clientId: string;
}

export class TooManyAttempts extends HttpProblem {
  constructor(seconds: number) {
    super(429, "too-many-requests", "too many wrong credentials", undefined, seconds);
  }
}

export class People {
  readonly #users: ReadonlyMap<string, IntakeUser>;
  readonly #clients: ReadonlyMap<string, string>;
  readonly #audience: string;
  readonly #secret: Buffer;
  readonly #clock: Clock;
  readonly #lifetimeMs: number;
  readonly #throttle: SignInThrottle;

  constructor(
    options: {
      readonly name: string;
      readonly users: readonly IntakeUser[];
      readonly clients: readonly { readonly id: string; readonly secret: string }[];
      readonly tokenLifetime: number;
      readonly throttle: SignInLimits;
    },
    secret: Buffer,
    clock: Clock,
  ) {
    this.#users = new Map(options.users.map((user) => [user.username, user]));
    this.#clients = new Map(options.clients.map(({ id, secret: own }) => [id, own]));
    this.#audience = `headgate-intake:${options.name}`;
    this.#lifetimeMs = options.tokenLifetime;
    this.#secret = secret;
    this.#clock = clock;
    this.#throttle = createSignInThrottle(options.throttle, clock);
  }

  /** Throws `TooManyAttempts`, as `signIn` does. */
  isClient(id: string, secret: string, address: string): boolean {
    if (this.#clients.size === 0) return true;
    return this.#isRight({ address, name: `client ${id}` }, secret, this.#clients.get(id));
  }

  signIn(username: string, password: string, address: string): IntakeUser | null {
    const user = this.#users.get(username);
    const isRight = this.#isRight({ address, name: `user ${username}` }, password, user?.password);
    return isRight && user !== undefined ? user : null;
  }

  #isRight(attempt: Attempt, given: string, known: string | undefined): boolean {
    const seconds = this.#throttle.begin(attempt);
    if (seconds > 0) throw new TooManyAttempts(seconds);
    const isRight = this.#matches(given, known);
    if (isRight) this.#throttle.succeeded(attempt);
    else this.#throttle.failed(attempt);
    return isRight;
  }

  async issue(grant: Grant): Promise<{ token: string; lifetimeSec: number }> {
    const { clientId: client_id } = grant;
    const generation = this.#generationOf(grant);
    const nowSec = Math.floor(this.#clock.now().epochMilliseconds / 1_000);
    const lifetimeSec = Math.max(1, Math.round(this.#lifetimeMs / 1_000));
    const token = await new SignJWT({ scope: grant.scopes.join(" "), client_id, generation })
      .setProtectedHeader({ alg: ALGORITHM, typ: "at+jwt" })
      .setSubject(grant.username)
      .setAudience(this.#audience)
      .setIssuedAt(nowSec)
      .setExpirationTime(nowSec + lifetimeSec)
      .sign(this.#secret);
    return { token, lifetimeSec };
  }

  /** The user of the request with the right, by Bearer (with the scope) or Basic. Throws an `HttpProblem`. */
  async authenticate(request: FastifyRequest, right: IntakeRight, scope: string): Promise<IntakeUser> {
    checkApiVersion(request, "intake");
    const [scheme, rest] = authorizationOf(request);
    const user = scheme === "basic" ? this.#basic(rest, request.ip) : await this.#bearer(scheme, rest, scope);
    if (user.rights.includes(right)) return user;
    throw new HttpProblem(403, "missing-right", `the user ${user.username} lacks the right: ${RIGHT_WORDS[right]}`);
  }

  #basic(credentials: string, address: string): IntakeUser {
    const { name, password } = basicCredentials(credentials);
    const user = this.signIn(name, password, address);
    if (user === null) throw unauthenticated("wrong user name or password");
    return user;
  }

  async #bearer(scheme: string, token: string, scope: string): Promise<IntakeUser> {
    if (scheme !== "bearer" || token === "")
      throw unauthenticated("send `Authorization: Bearer <access token>`, or Basic with user and password");
    const grant = await this.#verify(token);
    if (grant === null) throw unauthenticated("the access token is not valid or has expired");
    if (!grant.scopes.includes(scope))
      throw new HttpProblem(401, "missing-scope", `the access token lacks the scope ${scope}`);
    const user = this.#users.get(grant.username);
    if (user === undefined) throw unauthenticated("the user of the access token may no longer send");
    return user;
  }

  async #verify(token: string): Promise<Grant | null> {
    try {
      const { payload } = await jwtVerify(token, this.#secret, {
        algorithms: [ALGORITHM],
        audience: this.#audience,
        requiredClaims: ["exp", "sub"],
        currentDate: new Date(this.#clock.now().epochMilliseconds),
      });
      const scopes = String(payload["scope"] ?? "").split(" ");
      const grant = { username: payload.sub ?? "", scopes, clientId: String(payload["client_id"]) };
      const generation = this.#generationOf(grant);
      return generation !== null && generation === payload["generation"] ? grant : null;
    } catch (thrown) {
      if (thrown instanceof JOSEError) return null;
      throw thrown;
    }
  }

  /** Changes with the password or the client secret; null when the client, or the user, was removed. */
  #generationOf({ username, clientId }: Grant): string | null {
    const password = this.#users.get(username)?.password;
    const secret = this.#clients.size === 0 ? "" : this.#clients.get(clientId);
    if (password === undefined || secret === undefined) return null;
    return createHmac("sha256", this.#secret)
      .update(JSON.stringify([password, secret]))
      .digest("base64url");
  }

  #matches(given: string, known: string | undefined): boolean {
    const digest = (text: string) => createHash("sha256").update(text).digest();
    const equal = timingSafeEqual(digest(given), digest(known ?? DECOY));
    return equal && known !== undefined;
  }
}
