/**
 * Access to the operations API: the secret of the endpoint file may do everything, a token only what it is configured
 * for, and a session of the console what the role of its person permits.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { InvariantError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import { uriDecoded } from "#core/text.ts";
import type { Person } from "./api/endpoint.ts";
import type { Console } from "./console/console.ts";
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
  /** Sessions of browsers, where this listener takes them. */
  readonly people?: Pick<Console, "callerOf" | "sessions"> | undefined;
}

interface Caller {
  readonly person: Person;
  readonly rights: readonly Need[];
  readonly csrfToken: string | null;
}

const ROLE_RIGHTS: Readonly<Record<Person["role"], readonly Need[]>> = {
  viewer: ["read"],
  operator: ["read", "command"],
};

/** The person who uses the program, percent-encoded. */
export const PERSON_HEADER = "x-headgate-by";
const COMMAND_LINE = "command line";
const NAME_CHARACTERS_MAX = 200;

export interface Access {
  mayAsk(request: FastifyRequest, need: AccessRight | "command"): boolean;
  /** Of an admitted request. A program with the endpoint file's secret may name the person who uses it. */
  callerOf(request: FastifyRequest): { readonly person: Person; readonly csrfToken: string | null };
  /** Whether its session lasts; does not count as a use of it. */
  isAdmitted(request: FastifyRequest): boolean;
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
      const name = uriDecoded(String(headers[PERSON_HEADER] ?? "")).slice(0, NAME_CHARACTERS_MAX) || COMMAND_LINE;
      return { person: { name, role: "operator" }, rights: ["metrics", "read", "command"], csrfToken: null };
    }
    const token = rules.tokens.find((one) => isBearer(authorization, one.token));
    if (token === undefined) return null;
    return { person: { name: token.name, role: "viewer" }, rights: token.rights, csrfToken: null };
  };
  const callerOf = (request: FastifyRequest): Caller | "forged" | null => {
    const program = programOf(request);
    if (program !== null || rules.people === undefined) return program;
    const found = rules.people.callerOf(request);
    return found === null || found === "forged" ? found : { ...found, rights: ROLE_RIGHTS[found.person.role] };
  };
  const mayAsk = (request: FastifyRequest, need: Need) => {
    const caller = callerOf(request);
    return caller !== null && caller !== "forged" && caller.rights.includes(need);
  };
  const warn = createRareWarning(
    log,
    "refused",
    "requests without valid credentials were refused by the operations API",
  );
  app.addHook("onRequest", async (request, reply) => {
    // An unknown address is said to be unknown to all who may read.
    const { need = request.is404 ? "read" : "command" } = request.routeOptions.config;
    if (need === "nothing") return;
    const caller = callerOf(request);
    if (caller !== null && caller !== "forged" && caller.rights.includes(need)) return;
    warn({ from: request.ip, path: request.url.split("?")[0] });
    if (caller === null) return refuseUnknown(reply);
    return sendProblem(reply, 403, { detail: caller === "forged" ? FORGED : wordsOfRight(need, caller) });
  });
  return {
    mayAsk,
    isAdmitted: (request) => programOf(request) !== null || rules.people?.sessions.isOpen(request) === true,
    callerOf(request) {
      const caller = callerOf(request);
      if (caller !== null && caller !== "forged") return caller;
      throw new InvariantError("HG-BUG-001", {
        operation: "name caller",
        subject: request.routeOptions.url ?? "",
        message: "a request without credentials was admitted",
      });
    },
  };
}

const FORGED = "the header X-CSRF-Token is missing or of another session, or the request is from another site";

function refuseUnknown(reply: FastifyReply): FastifyReply {
  const detail =
    "send `Authorization: Bearer <token>`: a token of operations.access.tokens, or for commands the secret of " +
    "the file beside the ledger";
  return sendProblem(reply.header("www-authenticate", "Bearer"), 401, { detail });
}

function wordsOfRight(need: Need, { csrfToken, person }: Caller): string {
  if (csrfToken !== null) return `${person.name} is a ${person.role}, and this is for operators`;
  return need === "command"
    ? "a token cannot authorize commands: use the secret of the file beside the ledger"
    : `the token lacks the right ${need}`;
}

/** Compared in constant time. */
function isBearer(authorization: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization), digest(`Bearer ${secret}`));
}
