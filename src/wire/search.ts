/** Search over sites, sources and variables: an extension of Headgate (docs/hub/structure.md). */
import { z } from "zod";
import { caseless, queryInteger } from "./caseless.ts";

export const searchQuery = caseless(
  z.object({
    SearchText: z.string().max(200).describe("Words or their beginnings, all of which must be found."),
    "Paging.ItemsPerPage": queryInteger.optional().describe("At most 200; 50 when left out."),
  }),
);

const FOUND_ENTITIES = ["Site", "Source", "Variable"] as const;

export const found = z.object({
  entity: z.enum(FOUND_ENTITIES),
  id: z.int(),
  name: z.string(),
  siteId: z.int(),
  siteName: z.string(),
  /** Null for sites. */
  sourceId: z.int().nullable(),
  sourceName: z.string().nullable(),
  serialNumber: z.string().nullable(),
  /** Null for sites and sources. */
  unitId: z.int().nullable(),
});
export type Found = z.infer<typeof found>;
