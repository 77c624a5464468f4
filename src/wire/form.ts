/**
 * Forms: fields of their own that an account gives to its sites or sources (specification, *Form definition*). Ids of
 * types and entities, and the fields `options` and `referenceTo`, are the hub's own (`docs/hub/structure.md`, *Forms*).
 */
import { z } from "zod";
import { shownBeside } from "#core/shown-value.ts";
import { caseless, listOf, paging, queryBoolean } from "./caseless.ts";

export const FORM_ENTITIES = { Site: 1, Source: 2 } as const;
export type FormEntity = keyof typeof FORM_ENTITIES;

export const FIELD_TYPES = { Text: 1, Number: 2, Date: 3, Boolean: 4, List: 5, Reference: 6 } as const;
export type FieldTypeName = keyof typeof FIELD_TYPES;

/** An id of the list, or its name in any case. */
function numbered<const Ids extends Readonly<Record<string, number>>>(ids: Ids) {
  const known = Object.entries(ids);
  const words = known.map(([name, id]) => `${id} (${name})`).join(", ");
  const read = (input: unknown) => {
    const text = String(input).toLowerCase();
    return known.find(([name, id]) => name.toLowerCase() === text || String(id) === text)?.[1] ?? input;
  };
  const values = Object.values(ids) as Ids[keyof Ids][];
  const error = ({ input }: { readonly input?: unknown }) =>
    input === undefined ? "is missing" : `must be one of ${words}, and not ${shownBeside(input, Object.keys(ids))}`;
  return z.preprocess(read, z.literal(values, { error })).describe(`One of ${words}.`);
}

const NAME_MAX = 100;
/** Filters write names between quotes. */
const name = z
  .string()
  .trim()
  .min(1)
  .max(NAME_MAX)
  .refine((text) => !/["\\\p{Cc}]/u.test(text) && text.isWellFormed(), {
    error: 'must hold no quote ("), no backslash and no control character, since filters write it between quotes',
  })
  // A value under the name of a property that every object has, such as toString, would be taken for it.
  .refine((text) => !(text in {}) && text !== "prototype", { error: "is reserved" });
const order = z.int().optional().describe("Place among its neighbours; that in the body when left out.");
const id = z.union([z.string(), z.int()]).optional().describe("Of one that is there, so that its name can change.");

export const formFieldBody = caseless(
  z.object({
    id,
    name,
    type: numbered(FIELD_TYPES).optional(),
    displayOrder: order,
    isList: queryBoolean.optional().describe("Takes several values."),
    required: queryBoolean.optional(),
    timeSliced: queryBoolean.optional().describe("Fixed once the field is there."),
    options: z.array(z.string().trim().min(1).max(200)).min(1).max(1_000).optional().describe("Choices of a List."),
    referenceTo: numbered(FORM_ENTITIES).optional().describe("What a Reference names: Source when left out."),
  }),
);
export const formGroupBody = caseless(
  z.object({
    id,
    name,
    displayHeader: z.union([z.boolean(), z.string().max(200)]).optional(),
    displayOrder: order,
    fields: z.array(formFieldBody).max(200).optional(),
  }),
);
const formFields = {
  name,
  type: z.int().optional().describe("Free for clients; the hub reads nothing from it."),
  accountId: z.int().optional().describe("The account of the token."),
  displayOrder: order,
  entityType: numbered(FORM_ENTITIES).optional(),
  groups: z.array(formGroupBody).max(50).optional(),
};
export const formBody = caseless(z.object({ ...formFields, id }));
export type FormBody = z.infer<typeof formBody>;

/** PUT: what a body leaves out stays. */
export const formChange = caseless(z.object({ ...formFields, id, name: name.optional() }));
export type FormChange = z.infer<typeof formChange>;

export const formField = z.object({
  id: z.string(),
  name: z.string(),
  displayOrder: z.int(),
  isList: z.boolean(),
  required: z.boolean(),
  timeSliced: z.boolean(),
  type: z.int(),
  options: z.array(z.string()).nullish(),
  referenceTo: z.int().nullish(),
});
export const form = z.object({
  id: z.string(),
  name: z.string(),
  type: z.int(),
  accountId: z.int(),
  displayOrder: z.int(),
  entityType: z.int(),
  groups: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      displayHeader: z.union([z.boolean(), z.string()]).nullish(),
      displayOrder: z.int(),
      fields: z.array(formField),
    }),
  ),
});
export type Form = z.infer<typeof form>;

export const formsQuery = caseless(
  z.object({
    Name: listOf(z.string()).optional().describe("In any case."),
    EntityType: numbered(FORM_ENTITIES).optional(),
    ...paging,
  }),
);

const WithData = queryBoolean.optional().describe("Removes the values that would not fit.");
export const newFormQuery = caseless(
  z.object({ Name: name.optional().describe("For a body without a name."), WithData }),
);

export const formDataQuery = caseless(
  z.object({ WithData: queryBoolean.optional().describe("Removes values that would no longer fit.") }),
);

/** Body of POST …/slices; a null `Value` means no value from then on. */
export const sliceBody = z.object({
  FromDate: z.string().describe("ISO 8601; without a zone in that of the site or the source."),
  Value: z.unknown(),
});

/** PUT …/slices/{id}: what the body leaves out stays. */
export const sliceChange = sliceBody.partial();

export const slice = z.object({
  id: z.int(),
  EffectiveDate: z.string(),
  Value: z.unknown(),
  EndDate: z.string().describe("The next EffectiveDate, or the far end of the range of dates."),
});

export const slicesQuery = caseless(
  z.object({ AsOf: z.string().optional().describe("Only the slice of this moment.") }),
);
