/** Definitions of forms: bodies made whole, what a change may change, and what becomes of values then. */
import { isDeepStrictEqual } from "node:util";
import { HttpProblem } from "#wire/http-problem.ts";
import { FIELD_TYPES, FORM_ENTITIES, type Form, type FormChange, type FormEntity } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";
import { foldedText } from "../store/filter-sql.ts";
import type {
  FormFit,
  KnownIds,
  NewField,
  NewForm,
  NewGroup,
  Refit,
  RefitSlice,
  StoredField,
  StoredForm,
} from "../store/forms.ts";
import { isoOfMs } from "../time.ts";
import { type Fields, isFields, named, type Placed, pathOf, placesOf, put, sameName } from "./names.ts";
import { type FieldValue, readValue, UnfitValue } from "./read-value.ts";

type GroupBody = NonNullable<FormChange["groups"]>[number];
type FieldBody = NonNullable<GroupBody["fields"]>[number];

/**
 * Fields that a body leaves out are as in `current`; groups are replaced as a whole. Throws a 400 that names the field.
 */
export function formOf(body: FormChange & { readonly name: string }, current: StoredForm | null): NewForm {
  const entityType = body.entityType === undefined ? (current?.entityType ?? "Source") : entityOf(body.entityType);
  if (current !== null && entityType !== current.entityType)
    throw invalidField("entityType", "cannot change: make another form");
  return {
    name: body.name,
    type: body.type ?? current?.type ?? 0,
    displayOrder: body.displayOrder ?? current?.displayOrder ?? 0,
    entityType,
    groups: body.groups === undefined ? (current?.groups ?? []) : groupsOf(body.groups, current),
  };
}

export function entityOf(id: number): FormEntity {
  return id === FORM_ENTITIES.Site ? "Site" : "Source";
}

function groupsOf(bodies: readonly GroupBody[], current: StoredForm | null): NewGroup[] {
  requireDistinct(bodies, "groups");
  const former = sameAs(current?.groups ?? [], bodies, "groups");
  return bodies.map((body, at) => {
    const path = `groups.${at}.fields`;
    const before = former[at];
    const fields = body.fields ?? [];
    requireDistinct(fields, path);
    const formerFields = sameAs(before?.fields ?? [], fields, path);
    return {
      id: before?.id ?? null,
      name: body.name,
      displayHeader: body.displayHeader ?? before?.displayHeader ?? null,
      displayOrder: body.displayOrder ?? at,
      fields: fields.map((field, place) => fieldOf(field, place, `${path}.${place}`, formerFields[place])),
    };
  });
}

interface Identified {
  readonly id?: string | number | undefined;
  readonly name: string;
}

/** The items that bodies name by their ids, so that names can change, or else by their names; undefined: new ones. */
function sameAs<Item extends { readonly id: number; readonly name: string }>(
  items: readonly Item[],
  bodies: readonly Identified[],
  path: string,
): readonly (Item | undefined)[] {
  if (items.length === 0) return [];
  const byId = bodies.map(({ id }, at) => {
    if (id === undefined) return undefined;
    const found = items.find((item) => String(item.id) === String(id));
    const why = `there is none with the id ${id} here; leave it out`;
    if (found === undefined) throw invalidField(`${path}.${at}.id`, why);
    const isFirst = bodies.findIndex((other) => String(other.id) === String(id)) === at;
    if (!isFirst) throw invalidField(`${path}.${at}.id`, `${id} is there twice`);
    return found;
  });
  const rest = items.filter((item) => !byId.includes(item));
  return bodies.map(({ id, name }, at) => (id === undefined ? named(rest, name) : byId[at]));
}

function requireDistinct(items: readonly { readonly name: string }[], path: string): void {
  for (const [at, { name }] of items.entries())
    if (items.findIndex((other) => sameName(other.name, name)) < at)
      throw invalidField(`${path}.${at}.name`, `${name} is there twice (upper and lower case count as the same)`);
}

function fieldOf(body: FieldBody, at: number, path: string, before: StoredField | undefined): NewField {
  const type = body.type ?? before?.type ?? FIELD_TYPES.Text;
  const timeSliced = body.timeSliced ?? before?.timeSliced ?? false;
  if (before !== undefined && timeSliced !== before.timeSliced)
    throw invalidField(
      `${path}.timeSliced`,
      `cannot change once the field ${before.name} is there: add another field, and remove this one`,
    );
  const isOptions = type === FIELD_TYPES.List;
  const isReference = type === FIELD_TYPES.Reference;
  if (body.options !== undefined && !isOptions) throw invalidField(`${path}.options`, "are for fields of type List");
  if (body.referenceTo !== undefined && !isReference)
    throw invalidField(`${path}.referenceTo`, "is for fields of type Reference");
  const options = (body.options ?? []).map(foldedText);
  const double = body.options?.find((_, place) => options.indexOf(options[place] ?? "") < place);
  if (double !== undefined)
    throw invalidField(`${path}.options`, `${double} is there twice (upper and lower case count as the same)`);
  return {
    id: before?.id ?? null,
    name: body.name,
    type,
    displayOrder: body.displayOrder ?? at,
    isList: body.isList ?? before?.isList ?? false,
    required: body.required ?? before?.required ?? false,
    timeSliced,
    options: isOptions ? (body.options ?? before?.options ?? null) : null,
    referenceTo: isReference ? (body.referenceTo ?? before?.referenceTo ?? FORM_ENTITIES.Source) : null,
  };
}

/** `withData`: values that do not fit go; otherwise the first of them is a 409. */
export function fitOf(withData: boolean): FormFit {
  return { refitSlices: refitSlicesOf(withData), refit: refitOf(withData) };
}

function refitSlicesOf(withData: boolean): FormFit["refitSlices"] {
  return (before, after, slices, ids) => {
    const places = new Map(placesOf(before).map((place) => [place.field.id, place]));
    const kept = new Map((after?.groups ?? []).flatMap(({ fields }) => fields.map((field) => [field.id, field])));
    return slices.flatMap(({ id, fieldId, fromMs, value }): RefitSlice[] => {
      // No value fits everywhere.
      const field = kept.get(fieldId);
      if (field !== undefined && value === null) return [];
      const [read, why] = field === undefined ? [null, "it goes with its field"] : readOrWhy(field, value, ids);
      if (why === null) return isDeepStrictEqual(read, value) ? [] : [{ id, value: read }];
      const place = places.get(fieldId);
      const where = `${place === undefined ? "the form" : pathOf(place)} has a slice from ${isoOfMs(fromMs)}`;
      if (!withData) throw conflict(`${where} that would be lost: ${why}`);
      return [{ id, value: null }];
    });
  };
}

/** A value, or why it cannot be taken. */
function readOrWhy(field: NewField, raw: unknown, ids: KnownIds): readonly [value: FieldValue, why: string | null] {
  try {
    const value = readValue(field, raw);
    const table = field.referenceTo === FORM_ENTITIES.Site ? "site" : "source";
    const named = field.type === FIELD_TYPES.Reference && value !== null ? [value].flat() : [];
    const missing = named.find((id) => !ids[table].has(Number(id)));
    return missing === undefined ? [value, null] : [null, `it names no ${table} of this account`];
  } catch (thrown) {
    if (!(thrown instanceof UnfitValue)) throw thrown;
    return [null, `it ${thrown.message}`];
  }
}

/** Values go by names: those that an entity has move to new names, and get the spelling of the definition. */
function refitOf(withData: boolean): Refit {
  return (before, after, { id, clientData }, ids) => {
    const entity = (after ?? before)?.entityType.toLowerCase();
    const rest: Record<string, unknown> = { ...clientData };
    const misfit = (path: string, why: string) => {
      if (!withData) throw conflict(`the ${entity} ${id} has a value of clientData.${path}: ${why}`);
    };
    const values: [readonly string[], unknown][] = [];
    for (const [name, held] of Object.entries(clientData)) {
      const isOurs = before !== null && sameName(name, before.name);
      const isInTheWay = after !== null && sameName(name, after.name);
      if (!isOurs && !isInTheWay) continue;
      delete rest[name];
      if (before !== null && !isOurs) misfit(name, `it is not of the form ${before.name}`);
      else for (const [path, value] of valuesOf(held)) values.push([[name, ...path], value]);
    }
    const moved: Record<string, unknown> = {};
    for (const [path, value] of values) {
      const place = after === null ? undefined : placeAfter(before, after, path);
      if (place === undefined)
        misfit(path.join("."), after === null ? "it goes with the form" : "the form has no such field");
      else if (place.field.timeSliced) misfit(path.join("."), "it has no date from which it holds");
      else {
        const [read, why] = readOrWhy(place.field, value, ids);
        if (why !== null) misfit(path.join("."), why);
        else if (read !== null) put(moved, place, read);
      }
    }
    const fitted = { ...rest, ...moved };
    return isDeepStrictEqual(fitted, clientData) ? undefined : fitted;
  };
}

/** A value in the place of a form or a group, which is no object, counts as one value. */
function valuesOf(groups: unknown): [readonly string[], unknown][] {
  if (!isFields(groups)) return groups === null ? [] : [[[], groups]];
  return Object.entries(groups).flatMap(([group, fields]): [readonly string[], unknown][] => {
    if (!isFields(fields)) return fields === null ? [] : [[[group], fields]];
    return Object.entries(fields as Fields)
      .filter(([, value]) => value !== null)
      .map(([field, value]) => [[group, field], value]);
  });
}

function placeAfter(before: StoredForm | null, after: NewForm, [, groupName, fieldName]: readonly string[]) {
  const places: Placed<NewForm>[] = placesOf(before ?? after);
  const found = places.find(
    ({ group, field }) => sameName(group.name, groupName ?? "") && sameName(field.name, fieldName ?? ""),
  );
  // Fields of a new form have no ids yet.
  return before === null ? found : placesOf(after).find(({ field }) => field.id === found?.field.id);
}

function conflict(why: string): HttpProblem {
  return new HttpProblem(
    409,
    "conflict",
    `${why}; add WithData=true to remove such values, and nothing brings them back`,
  );
}

export function shownForm({ id, name, type, accountId, displayOrder, entityType, groups }: StoredForm): Form {
  return {
    id: String(id),
    name,
    type,
    accountId,
    displayOrder,
    entityType: FORM_ENTITIES[entityType],
    groups: groups.map(({ id, name, displayHeader, displayOrder, fields }) => ({
      id: String(id),
      name,
      displayHeader,
      displayOrder,
      fields: fields.map(({ id, ...field }) => ({
        ...field,
        id: String(id),
        options: field.options === null ? null : [...field.options],
      })),
    })),
  };
}
