/**
 * Views: named selections of sites or sources that `ViewId` uses again. The specification shows no way to
 * create them; this one is an extension of Headgate (`docs/hub-choices.md`).
 */
import { z } from "zod";
import { anyCase, caseless, nameText, queryInteger } from "./caseless.ts";
import { FORM_ENTITIES } from "./form.ts";

export const VIEW_TYPES = ["Site", "Source"] as const;

const entityType = anyCase(VIEW_TYPES, FORM_ENTITIES).describe(
  "What the view selects: it serves as ViewId of /sites or of /sources.",
);

export const viewBody = caseless(
  z.object({
    name: nameText(200),
    entityType,
    customFilter: z.string().min(1).max(10_000).describe("An expression, as the parameter CustomFilter takes it."),
  }),
);
export type ViewBody = z.infer<typeof viewBody>;

export const view = z.object({
  id: z.number().int(),
  name: z.string(),
  entityType: z.enum(VIEW_TYPES),
  customFilter: z.string(),
});
export type View = z.infer<typeof view>;

export const viewsQuery = caseless(
  z.object({
    EntityType: entityType.optional(),
    "Paging.PageNumber": queryInteger.optional(),
    "Paging.ItemsPerPage": queryInteger.optional(),
  }),
);
