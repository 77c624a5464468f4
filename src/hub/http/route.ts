/** Facts about each route beside its handler: its access rule, from one table, and its entry in the documentation. */
import type { z } from "zod";
import type { AccessRule } from "../token/guard.ts";

const BASE = { scopes: ["datahub-api"], basic: false } as const;
const PAGE = { scopes: [], right: null, basic: false } as const;

/** Null: no authentication. */
export const ACCESS = {
  open: null,
  read: { ...BASE, right: "read" },
  own: { ...BASE, right: "own" },
  people: { ...BASE, right: "people" },
  manage: { ...BASE, right: "structure" },
  upload: { ...BASE, right: "push" },
  push: { scopes: ["push-data"], right: "push", basic: true },
  follow: { scopes: ["push-data", "datahub-api"], right: "read", basic: false },
  /** Pages for every visitor, with or without a session. */
  visitor: { ...PAGE, page: "visitor" },
  /** Pages for one who has begun to sign in. */
  entering: { ...PAGE, page: "entering" },
  /** Pages for one who has signed in. */
  member: { ...PAGE, page: "member" },
  /** Pages for managers. */
  peoplePage: { ...PAGE, right: "people", page: "member" },
} as const satisfies Record<string, AccessRule | null>;

export type Access = keyof typeof ACCESS;

export interface RouteFacts {
  readonly access: Access;
  /** The heading under which the documentation shows it. */
  readonly tag: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** Names are matched without regard to case; the schema has the spelling to show. */
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** `application/json` when absent. */
  readonly bodyType?: string;
  /** Absent: without a body (204), or of the type in `answerType`. */
  readonly answer?: z.ZodType;
  readonly answerType?: string;
  /** Fields that answers of other addresses show, and that clients write back: they pass in a body, and are ignored. */
  readonly shown?: z.ZodType;
  /** Parameters may stand in the body, too; without `query` the body describes them. */
  readonly parametersInBody?: true;
  /** Why unknown parameters are refused here, beside those of lists and removals. */
  readonly refusesUnknown?: string;
  /** 200 when absent. */
  readonly status?: 200 | 204 | 410 | 501;
  /** Works as given in an account that holds a site, a source, a variable, a file trigger and a form 1. */
  readonly example?: { readonly query?: Readonly<Record<string, unknown>>; readonly body?: unknown };
  /** Name of the wildcard at the end of the address. */
  readonly rest?: string;
  /** Omitted from the documentation: its own page, and what leads there. */
  readonly hidden?: true;
}

export interface HubRoute {
  readonly method: string;
  /** In the syntax of Fastify: `/sources/:id`, `/storage/*`. */
  readonly url: string;
  readonly facts: RouteFacts;
}

/** The options of a route. */
export function described(facts: RouteFacts): { readonly config: { readonly facts: RouteFacts } } {
  return { config: { facts } };
}
