/** Facts about each route beside its handler: its access rule, and its entry in the documentation. */
import type { z } from "zod";
import type { Access } from "./access.ts";

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
