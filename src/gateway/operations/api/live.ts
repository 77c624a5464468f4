/** Server-sent events: what changed, so that pages need not ask again and again. */
import { z } from "zod";
import { ALL_ARRIVAL_STATES, ALL_RUN_STATES } from "../../states.ts";
import { EventStream, endpoint } from "./endpoint.ts";
import { instant } from "./state.ts";

/** By the names of events; each has one of these as JSON. */
export const liveEvents = {
  state: z.object({
    attention: z.number().nullable().describe("How many concerns there are; null while that is not known."),
    overviewAt: instant.describe("When something that the overview shows last changed."),
  }),
  attention: z.object({ total: z.number() }).describe("The number of concerns changed."),
  files: z.object({
    files: z
      .array(
        z.object({
          id: z.number(),
          path: z.string(),
          drop: z.string(),
          state: z.union([z.enum(ALL_ARRIVAL_STATES), z.enum(ALL_RUN_STATES)]).describe("Of the arrival, or its run."),
        }),
      )
      .describe("Files whose state changed, the newest last."),
    isCut: z.boolean().describe("More files changed than are named."),
  }),
  drops: z.object({
    drops: z.array(
      z.object({
        name: z.string(),
        state: z.enum(["ok", "paused", "trouble"]),
        words: z.string().nullable().describe("Why it is paused or in trouble."),
        waiting: z.number().describe("Files that are not taken yet."),
      }),
    ),
  }),
} as const;
export type LiveEvents = { readonly [Name in keyof typeof liveEvents]: z.output<(typeof liveEvents)[Name]> };

export const liveEndpoints = {
  live: endpoint({
    method: "GET",
    path: "/operations/live",
    need: "read",
    tag: "Live",
    summary: "Changes as they happen",
    description:
      "Server-sent events `state`, `attention`, `files` and `drops`, at most one of each a second; a comment every " +
      "15 seconds. A client that does not read is disconnected.",
    answer: new EventStream(liveEvents),
  }),
} as const;
