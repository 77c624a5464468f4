/**
 * Groups of sites, which `GroupId` of /storage selects by. The specification shows no way to create them; this one is
 * an extension of Headgate (`docs/hub-choices.md`).
 */
import { z } from "zod";
import { caseless, nameText, paging } from "./caseless.ts";

/** Sites of one body. */
const SITES_MAX = 10_000;

const siteIds = z.array(z.int()).max(SITES_MAX);

export const groupBody = caseless(
  z.object({ name: nameText(200), siteIds: siteIds.optional().describe("Sites of the group.") }),
);
export type GroupBody = z.infer<typeof groupBody>;

/** POST /groups/{id}/sites. */
export const groupSitesBody = caseless(z.object({ siteIds: siteIds.min(1).describe("Sites to add.") }));

export const group = z.object({ id: z.number().int(), name: z.string(), siteIds: z.array(z.number().int()) });
export type Group = z.infer<typeof group>;

export const groupsQuery = caseless(
  z.object({
    ...paging,
  }),
);
