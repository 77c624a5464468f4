/** The person who asks, and links that sign in. */
import { z } from "zod";
import { endpoint, ROLES } from "./endpoint.ts";
import { instant } from "./state.ts";

export const peopleEndpoints = {
  me: endpoint({
    method: "GET",
    path: "/operations/me",
    need: "read",
    tag: "People",
    summary: "The person who asks, and the gateway",
    answer: z.object({
      name: z.string(),
      role: z.enum(ROLES),
      csrfToken: z
        .string()
        .nullable()
        .describe("For the header X-CSRF-Token of every request of a session that is no GET; null for programs."),
      gateway: z.object({
        name: z.string().describe("Of its machine."),
        node: z.string().nullable().describe("In a fleet."),
        version: z.string(),
        nowIso: instant,
        zone: z.string().describe("Time zone of its machine, such as Europe/Brussels."),
      }),
    }),
  }),
} as const;

export const linkEndpoints = {
  makeLink: endpoint({
    method: "POST",
    path: "/operations/console/links",
    need: "command",
    tag: "People",
    summary: "A link that signs in once, as an operator with the name of the one who asks",
    description: "Only for a console on loopback without users.",
    answer: z.object({ url: z.string(), expiresAt: instant }),
  }),
} as const;
