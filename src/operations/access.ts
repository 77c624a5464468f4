/**
 * Access to the operations API: the secret of the endpoint file may do everything, a token only what it is configured
 * for.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { uriDecoded } from "../support/decoded-text.ts";
import { InvariantError } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { createRareWarning } from "../support/rare-warnings.ts";
import type { Person } from "./api/endpoint.ts";
import type { AccessRight } from "./options.ts";
import { sendProblem } from "./problems.ts";

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

interface Caller extends Person {
  readonly rights: readonly Need[];
}

/** The person who uses the program, percent-encoded. */
export const PERSON_HEADER = "x-headgate-by";
const COMMAND_LINE = "command line";
const NAME_CHARACTERS_MAX = 200;

export interface Access {
  mayAsk(request: FastifyRequest, need: AccessRight | "command"): boolean;
  /** Of an admitted request. A program with the endpoint file's secret may name the person who uses it. */
  personOf(request: FastifyRequest): Person;
}

/**
 * Call it before any route is added: from then on each route, and each unknown address, requires credentials unless
 * its `need` says otherwise.
 */
export function installAccess(app: FastifyInstance, rules: AccessRules, log: Logger): Access {
  const programOf = ({ headers }: FastifyRequest): Caller | null => {
    const { authorization } = headers;
    if (authorization === undefined) return null;
    if (rules.secret !== null && isBearer(authorization, rules.secret)) {
      const name = uriDecoded(String(headers[PERSON_HEADER] ?? "")).slice(0, NAME_CHARACTERS_MAX);
      return { name: name === "" ? COMMAND_LINE : name, role: "operator", rights: ["metrics", "read", "command"] };
    }
    const token = rules.tokens.find((one) => isBearer(authorization, one.token));
    return token === undefined ? null : { name: token.name, role: "viewer", rights: token.rights };
  };
  const rightsOf = (request: FastifyRequest) => programOf(request)?.rights ?? null;
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
  return {
    mayAsk: (request, need) => rightsOf(request)?.includes(need) ?? false,
    personOf(request) {
      const caller = programOf(request);
      if (caller === null)
        throw new InvariantError("HG-BUG-001", {
          operation: "name caller",
          subject: request.routeOptions.url ?? "",
          message: "a request without credentials was admitted",
        });
      return { name: caller.name, role: caller.role };
    },
  };
}

function refuseUnknown(reply: FastifyReply): FastifyReply {
  const detail =
    "send `Authorization: Bearer <token>`: a token of operations.access.tokens, or for commands the secret of " +
    "the file beside the ledger";
  return sendProblem(reply.header("www-authenticate", "Bearer"), 401, { detail });
}

function refuseRight(reply: FastifyReply, need: Need): FastifyReply {
  const detail =
    need === "command"
      ? "a token cannot authorize commands: use the secret of the file beside the ledger"
      : `the token lacks the right ${need}`;
  return sendProblem(reply, 403, { detail });
}

/** Compared in constant time. */
function isBearer(authorization: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization), digest(`Bearer ${secret}`));
}
