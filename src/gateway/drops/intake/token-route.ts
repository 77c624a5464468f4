/** The token endpoint of an intake: users and clients of the configuration. */
import type { FastifyInstance } from "fastify";
import type { Logger } from "#core/log.ts";
import { SCOPES } from "#wire/token.ts";
import { accountRefused, serveTokens, type TokenIssuer, tooMany } from "#wire/token-endpoint.ts";
import type { IntakeUser } from "./options.ts";
import { type People, TooManyAttempts } from "./senders.ts";

export interface TokenParts {
  readonly people: People;
  readonly log: Logger;
  /**
   * The account that a service of the configuration delivers into; undefined for the default account of its
   * user.
   */
  accountOf(service: string | undefined): string | undefined;
}

export function tokenRoutes(app: FastifyInstance, { people, log, accountOf }: TokenParts): Promise<void> {
  const issuer: TokenIssuer<string, IntakeUser> = {
    client: async (id, secret, address) => slowed(() => (people.isClient(id, secret, address) ? id : null)),
    scopesOf: () => SCOPES,
    user: async (name, password, address) => slowed(() => people.signIn(name, password, address)),
    issue: async ({ client, user, scopes, account }) => {
      // The data goes into the account of the service, so a token for another one would mislead its owner.
      const own = accountOf(user.service);
      if (account !== null && own !== undefined && account !== own) throw accountRefused(account);
      return await people.issue({ username: user.username, scopes, clientId: client });
    },
  };
  return serveTokens(app, issuer, { log });
}

function slowed<T>(check: () => T): T {
  try {
    return check();
  } catch (thrown) {
    if (thrown instanceof TooManyAttempts) throw tooMany(thrown.message, thrown.retryAfterSec ?? 1);
    throw thrown;
  }
}
