/**
 * Access to the operations API: the secret of the endpoint file may do everything, a token only what it is configured
 * for.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../support/log.ts";
import { createRareWarning } from "../support/rare-warnings.ts";
import type { AccessRight } from "./options.ts";

/** The right that a route requires; `command` is for the endpoint file's secret alone. */
type Need = AccessRight | "command" | "nothing";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The right that the route requires; the secret of the endpoint file when absent. */
    need?: Need;
  }
}

export interface AccessRules {
  readonly tokens: readonly {
    readonly name: string;
    readonly token: string;
    readonly rights: readonly AccessRight[];
  }[];
  /** The secret of the endpoint file (`endpoint-file.ts`); null: there is no such file. */
  readonly secret: string | null;
}

export interface Access {
  mayAsk(request: FastifyRequest, need: AccessRight | "command"): boolean;
}

/**
 * Call it before any route is added: from then on each route, and each unknown address, requires credentials unless
 * its `need` says otherwise.
 */
export function installAccess(app: FastifyInstance, rules: AccessRules, log: Logger): Access {
  const rightsOf = (request: FastifyRequest): readonly Need[] | null => {
    const { authorization } = request.headers;
    if (authorization === undefined) return null;
    if (rules.secret !== null && isBearer(authorization, rules.secret)) return ["metrics", "read", "command"];
    return rules.tokens.find(({ token }) => isBearer(authorization, token))?.rights ?? null;
  };
  const warn = createRareWarning(
    log,
    "refused",
    "requests without valid credentials were refused by the operations API",
  );
  app.addHook("onRequest", async (request, reply) => {
    const { need = "command" } = request.routeOptions.config;
    if (need === "nothing") return;
    const rights = rightsOf(request);
    if (rights?.includes(need)) return;
    warn({ from: request.ip, path: request.url.split("?")[0] });
    return rights === null ? refuseUnknown(reply) : refuseRight(reply, need);
  });
  return { mayAsk: (request, need) => rightsOf(request)?.includes(need) ?? false };
}

function refuseUnknown(reply: FastifyReply): FastifyReply {
  const detail =
    "send `Authorization: Bearer <token>`: a token of operations.access.tokens, or for commands the secret of " +
    "the file beside the ledger";
  return problem(reply.header("www-authenticate", "Bearer"), 401, detail);
}

function refuseRight(reply: FastifyReply, need: Need): FastifyReply {
  const detail =
    need === "command"
      ? "a token cannot authorize commands: use the secret of the file beside the ledger"
      : `the token lacks the right ${need}`;
  return problem(reply, 403, detail);
}

function problem(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return reply.code(status).type("application/problem+json").send({ title: "not allowed", status, detail });
}

/** Compared in constant time. */
function isBearer(authorization: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization), digest(`Bearer ${secret}`));
}
