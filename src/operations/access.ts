/** Who may ask what of the operator's interface: whoever has the secret of the endpoint file everything, programs what their token is for. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../support/log.ts";
import { createRareWarning } from "../support/rare-warning.ts";
import type { AccessRight } from "./options.ts";

/** What a route asks of its caller; `command` is for the endpoint file's secret alone. */
export type Need = AccessRight | "command" | "nothing";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Of the operator's interface; the secret of the endpoint file when absent. */
    need?: Need;
  }
}

export interface AccessRules {
  readonly tokens: readonly {
    readonly name: string;
    readonly token: string;
    readonly rights: readonly AccessRight[];
  }[];
  /** Of the endpoint file (`endpoint-file.ts`); null: there is none. */
  readonly secret: string | null;
}

export interface Access {
  mayAsk(request: FastifyRequest, need: AccessRight | "command"): boolean;
}

/** Before any route is added: from here on each of them, and each address that has none, wants credentials unless its `need` says otherwise. */
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
    "requests without valid credentials were refused by the operator's interface",
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
    "send `Authorization: Bearer <token>`: a token of operations.access.tokens, or for commands the secret of the file beside the ledger";
  return problem(reply.header("www-authenticate", "Bearer"), 401, detail);
}

function refuseRight(reply: FastifyReply, need: Need): FastifyReply {
  const detail =
    need === "command"
      ? "tokens give no commands: the secret of the file beside the ledger does"
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
