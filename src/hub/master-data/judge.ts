/** Compares what a file wants with what the account has: what to create and change, and why that is refused. */
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { bodyOf, customKey, customPath, valueAt, withValueAt } from "#mapping/readers/master-data/columns.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  type RowResult,
  SOURCE_TYPES,
  siteBody,
  sourceBody,
  usualAggregate,
  variableBody,
  WITHOUT_QUANTITY,
} from "#wire/index.ts";
import { fullWords } from "../account-limits.ts";
import { type Fields, isFields, named, type Placed, pathOf, placesOf, put, sameName } from "../forms/names.ts";
import { readValue, UnfitValue } from "../forms/read-value.ts";
import { judgeValues, valuesAsOf } from "../forms/values.ts";
import { fieldWords } from "../http/field-words.ts";
import type { FoundForms, HeldForms, ValuePlan } from "../store/form-values.ts";
import type { FoundStructure } from "../store/master-data.ts";
import type { MemberPlan } from "../store/people/member-plan.ts";
import type { StructureEntity, ValuesEntity } from "../store/records.ts";
import type { Ref, StructurePlan } from "../store/structure-plan.ts";
import { type Sender, UserJudging, type UserVerdict } from "./judge-users.ts";
import { placeWords, refuse, type Wanted, type WantedStructure, wordsOf } from "./wanted.ts";

/** The result that an entity will have. */
export interface Verdict {
  readonly result: RowResult;
  readonly fields: readonly string[];
  readonly ref: Ref | null;
}

export interface Verdicts {
  readonly plan: StructurePlan;
  readonly people: MemberPlan;
  readonly of: ReadonlyMap<Wanted, Verdict>;
}

/** Variable type without a meaning of its own. */
const GENERIC_TYPE = 131;
/** The type of sources that pushes feed. */
const PUSHED_DATA = SOURCE_TYPES.find(({ name }) => name === "Pushed Data")?.id ?? 1;

interface JudgedAt {
  readonly sender: Sender;
  readonly accountId: number;
  readonly atMs: number;
  /** Entities that the account may have. */
  readonly limits: MasterDataLimits;
}
export type MasterDataLimits = Readonly<Record<StructureEntity | "membership", number>>;

/** Rows get the reasons why what they say is refused. */
export function judge(wanted: WantedStructure, found: FoundStructure, by: JudgedAt): Verdicts {
  const { accountId, atMs, sender } = by;
  const judging = new Judging(found, new CustomValues(found.forms, atMs), by.limits);
  const of = judging.verdicts;
  for (const site of wanted.sites) of.set(site, judging.site(site));
  for (const source of wanted.sources) of.set(source, judging.source(source));
  for (const variable of wanted.variables) of.set(variable, judging.variable(variable));
  const users = new UserJudging(found.users, { accountId, atMs, sender, most: by.limits.membership });
  for (const user of wanted.users) of.set(user, ofUser(user, users.judge(user)));
  return { plan: judging.plan, people: users.plan, of };
}

type Item = Readonly<Record<string, unknown>> & { readonly id: number };
type Listed<List> = List extends readonly (infer One)[] ? One[] : never;
type Growing<Plan> = { [List in keyof Plan]: Listed<Plan[List]> };

/** The site of a source or the source of a variable, by the field that names it; one that is new has no id. */
interface Within {
  readonly field: string;
  readonly id: number | undefined;
}

/** An entity of the account; undefined: there is none; null: it is refused. */
type Current = Item | undefined | null;

const REFUSED: Verdict = { result: "refused", fields: [], ref: null };

class Judging {
  readonly verdicts = new Map<Wanted, Verdict>();
  readonly plan: Growing<StructurePlan> = {
    sites: [],
    sources: [],
    variables: [],
    changedSites: [],
    changedSources: [],
    changedVariables: [],
  };
  readonly #found: FoundStructure;
  readonly #custom: CustomValues;
  readonly #limits: JudgedAt["limits"];
  readonly #indexes = new Map<string, Map<unknown, Item[]>>();
  /** The first that names an entity of the account. */
  readonly #taken = new Map<string, Wanted>();

  constructor(found: FoundStructure, custom: CustomValues, limits: JudgedAt["limits"]) {
    this.#custom = custom;
    this.#limits = limits;
    this.#found = found;
  }

  site(wanted: Wanted): Verdict {
    const { plan } = this;
    const current = this.#one(wanted, this.#matching("sites", wanted.key.by, wanted.key.value));
    if (current === null) return REFUSED;
    const fields = this.#changes(wanted, current);
    if (current !== undefined && fields.length === 0) return settled(current, fields);
    const body = this.#body(siteBody.out, wanted, current ?? {});
    const values = this.#values("site", wanted, current);
    if (body === null || values === "refused") return REFUSED;
    const whole = { body: { ...body, clientData: values.clientData }, values };
    if (current === undefined) return this.#created("site", wanted, () => plan.sites.push(whole));
    plan.changedSites.push({ id: current.id, ...whole });
    return settled(current, fields);
  }

  source(wanted: Wanted): Verdict {
    const { plan } = this;
    const site = this.#parentOf(wanted);
    if (site === "refused") return this.#refusedWithParent(wanted);
    const { by, value } = wanted.key;
    const siteId = site !== null && "id" in site ? site.id : undefined;
    // A name names a source within its site.
    const isWithin = by === "name" && site !== null;
    const named = this.#matching("sources", by, value, isWithin ? { field: "siteId", id: siteId } : undefined);
    const current = this.#one(wanted, named);
    if (current === null) return REFUSED;
    const isMoved = current !== undefined && site !== null && siteId !== current["siteId"];
    const fields = [...this.#changes(wanted, current), ...(isMoved ? ["siteId"] : [])];
    if (current !== undefined && fields.length === 0) return settled(current, fields);
    if (current === undefined && site === null)
      return this.#refuse(wanted, "it does not exist, and a new one needs its site: fill site_name");
    const defaults = { name: String(value), sourceTypeId: PUSHED_DATA, siteId: 0 };
    const body = this.#body(sourceBody.out, wanted, current ?? defaults);
    const values = this.#values("source", wanted, current);
    if (body === null || values === "refused") return REFUSED;
    const whole = { body: { ...body, clientData: values.clientData }, values };
    const inSite = site ?? { id: Number(current?.["siteId"]) };
    if (current === undefined)
      return this.#created("source", wanted, () => plan.sources.push({ ...whole, site: inSite }));
    plan.changedSources.push({ id: current.id, ...whole, site: inSite });
    return settled(current, fields);
  }

  variable(wanted: Wanted): Verdict {
    const { plan } = this;
    const source = this.#parentOf(wanted);
    if (source === "refused") return this.#refusedWithParent(wanted);
    const sourceId = source !== null && "id" in source ? source.id : undefined;
    const { by, value } = wanted.key;
    const within = by === "id" ? undefined : { field: "sourceId", id: sourceId };
    const current = this.#one(wanted, this.#matching("variables", by, value, within));
    if (current === null) return REFUSED;
    if (current === undefined) {
      const defaults = { name: nameOf(wanted), variableTypeId: GENERIC_TYPE, sourceId: 0 };
      const body = this.#body(variableBody.out, wanted, defaults);
      if (body === null || source === null) return REFUSED;
      if (usualAggregate(body) === null) wanted.rows[0]?.notes.push(`${wordsOf(wanted)} has ${WITHOUT_QUANTITY}`);
      return this.#created("variable", wanted, () => plan.variables.push({ body, source }));
    }
    if (source !== null && current["sourceId"] !== sourceId)
      return this.#refuse(wanted, `it is in the source ${current["sourceId"]}, and variables are not moved`);
    const fields = this.#changes(wanted, current);
    if (this.#found.withPoints.has(current.id)) {
      const why = "it has points, and its history begins or ends with is_versioned: make another variable";
      if (fields.includes("isVersioned")) return this.#refuse(wanted, why, "isVersioned");
      const note = `${wordsOf(wanted)} has another unit now: its values are not converted`;
      if (fields.includes("unitId")) wanted.saidIn.get("unitId")?.notes.push(note);
    }
    if (fields.length === 0) return settled(current, fields);
    const body = this.#body(variableBody.out, wanted, current);
    if (body === null) return REFUSED;
    plan.changedVariables.push({ id: current.id, body });
    return settled(current, fields);
  }

  /** Null: the file does not say in what it is. */
  #parentOf({ parent }: Wanted): Ref | "refused" | null {
    return parent === null ? null : (this.verdicts.get(parent)?.ref ?? "refused");
  }

  #one(wanted: Wanted, matching: readonly Item[]): Current {
    const [first, second] = matching;
    const { entity, key } = wanted;
    if (second !== undefined) {
      const ids = matching.map(({ id }) => id).slice(0, 5);
      this.#refuse(
        wanted,
        `there are ${matching.length} of them: name one by ${entity}_id (${ids.join(", ")})`,
        key.by,
      );
      return null;
    }
    if (first === undefined && key.by === "id") {
      this.#refuse(wanted, "the account has none with this id", "id");
      return null;
    }
    const other = first === undefined ? undefined : this.#taken.get(`${entity} ${first.id}`);
    const [row] = other?.rows ?? [];
    if (other !== undefined && row !== undefined) {
      this.#refuse(wanted, `${placeWords(row)} names it, too, as ${wordsOf(other)}: name it in the same way`, key.by);
      return null;
    }
    if (first !== undefined) this.#taken.set(`${entity} ${first.id}`, wanted);
    return first;
  }

  /** `within`: only those in this site or source. */
  #matching(list: "sites" | "sources" | "variables", field: string, value: unknown, within?: Within): readonly Item[] {
    const parent = within === undefined ? "" : within.field;
    const name = `${list} ${field} ${parent}`;
    const items = this.#found[list] as readonly unknown[] as readonly Item[];
    const keyOf = (one: unknown, parentId: unknown) =>
      within === undefined ? one : `${String(parentId)} ${String(one)}`;
    const index = this.#indexes.get(name) ?? Map.groupBy(items, (one) => keyOf(one[field], one[parent]));
    this.#indexes.set(name, index);
    return index.get(keyOf(value, within?.id)) ?? [];
  }

  /** Null: fields are missing, which is recorded. */
  #body<Body>(schema: z.ZodType<Body>, wanted: Wanted, current: Readonly<Record<string, unknown>>): Body | null {
    // Values of forms are judged by themselves.
    const standard = Object.entries(wanted.fields).filter(([field]) => customKey(field) === null);
    const parsed = schema.safeParse(bodyOf(current, Object.fromEntries(standard)), { error: fieldWords });
    if (parsed.success) return parsed.data;
    for (const { path, message } of parsed.error.issues) {
      const field = String(path[0]);
      const isMissing = wanted.fields[field] === undefined;
      this.#refuse(wanted, isMissing ? `it does not exist, and a new one needs its ${field}` : message, field);
    }
    return null;
  }

  #values(entity: ValuesEntity, wanted: Wanted, current: Item | undefined): ValuePlan | "refused" {
    const { plan, faults } = this.#custom.judge(entity, wanted.fields, current);
    for (const { field, message } of faults) this.#refuse(wanted, message, field);
    return plan ?? "refused";
  }

  #changes({ entity, fields }: Wanted, current: Item | undefined): string[] {
    if (current === undefined) return [];
    const isCustom = (field: string) => entity !== "variable" && entity !== "user" && customKey(field) !== null;
    return Object.keys(fields).filter((field) =>
      isCustom(field)
        ? this.#custom.differs(entity as ValuesEntity, field, fields[field], current)
        : !isDeepStrictEqual(current[field], fields[field]),
    );
  }

  /** `add`: returns how many the plan creates, with this one. */
  #created(entity: StructureEntity, wanted: Wanted, add: () => number): Verdict {
    const most = this.#limits[entity];
    if (this.#found.counts[entity] + this.plan[`${entity}s`].length >= most)
      return this.#refuse(wanted, fullWords({ table: entity, most }));
    return { result: "created", fields: Object.keys(wanted.fields), ref: { created: add() - 1 } };
  }

  #refuse(wanted: Wanted, why: string, field?: string): Verdict {
    refuse(wanted, why, field);
    return REFUSED;
  }

  #refusedWithParent(wanted: Wanted): Verdict {
    const row = wanted.owner ?? wanted.rows[0];
    if (row?.reasons.length !== 0 || wanted.parent === null) return REFUSED;
    return this.#refuse(wanted, `${wordsOf(wanted.parent)} is refused`);
  }
}

function ofUser({ fields }: Wanted, verdict: UserVerdict): Verdict {
  if (verdict.kind === "refused") return REFUSED;
  if (verdict.kind === "created")
    return { result: "created", fields: Object.keys(fields), ref: { created: verdict.at } };
  return settled(verdict, verdict.fields);
}

function settled({ id }: Pick<Item, "id">, fields: readonly string[]): Verdict {
  return { result: fields.length === 0 ? "unchanged" : "changed", fields, ref: { id } };
}

function nameOf({ fields, key }: Wanted): string {
  return String(fields["mappingConfig"] ?? `type ${key.value}`);
}

/** The id that a reference stands for; null while it does not exist. */
export function idOf(ref: Ref | null, created: readonly number[] | undefined): number | null {
  if (ref === null) return null;
  return "id" in ref ? ref.id : (created?.[ref.created] ?? null);
}

interface Holder {
  readonly id?: number;
  readonly clientData?: unknown;
}

interface JudgedColumns {
  /** Null: it is refused. */
  readonly plan: ValuePlan | null;
  readonly faults: readonly { readonly field: string; readonly message: string }[];
}

/** Columns `source_custom.…` and `site_custom.…`: fields of forms of the account, and other keys of `clientData`. */
class CustomValues {
  readonly #found: FoundForms;
  readonly #atMs: number;

  constructor(found: FoundForms, atMs: number) {
    this.#found = found;
    this.#atMs = atMs;
  }

  /** Whether a cell says another value than the entity has now. */
  differs(entity: ValuesEntity, field: string, value: unknown, current: Holder): boolean {
    const held = this.#held(entity, current);
    const shown = valuesAsOf(held, plainOf(current), this.#atMs);
    const key = customKey(field) ?? "";
    const place = placeOf(held, key);
    if (place === undefined) return !isDeepStrictEqual(valueAt(shown, customPath(key)), value);
    try {
      const { form, group } = place;
      const before = valueAt(shown, [form.name, group.name, place.field.name]) ?? null;
      return !isDeepStrictEqual(readValue(place.field, cellOf(place, value)), before);
    } catch (thrown) {
      if (thrown instanceof UnfitValue) return true;
      throw thrown;
    }
  }

  /** The values that an entity gets; a time-sliced one holds from the moment of the file on. */
  judge(entity: ValuesEntity, fields: Fields, current: Holder = {}): JudgedColumns {
    const before = plainOf(current);
    const columns = Object.entries(fields).filter(([field]) => customKey(field) !== null);
    if (columns.length === 0)
      return {
        plan: { clientData: before === null ? undefined : { ...before }, slices: [], references: [] },
        faults: [],
      };
    const held = this.#held(entity, current);
    let values = valuesAsOf(held, before, this.#atMs);
    const faults: { field: string; message: string }[] = [];
    const fieldOf = new Map<string, string>();
    for (const [field, value] of columns) {
      const key = customKey(field) ?? "";
      const place = placeOf(held, key);
      const form = named(held.forms, key.split(".")[0]?.trim() ?? "");
      if (place !== undefined) {
        values = structuredClone(values);
        put(values, place, cellOf(place, value));
        fieldOf.set(pathOf(place), field);
      } else if (form === undefined) values = withValueAt(values, customPath(key), value) as Record<string, unknown>;
      else faults.push({ field, message: `the form ${form.name} has no such field` });
    }
    if (faults.length > 0) return { plan: null, faults };
    try {
      const plan = judgeValues(held, { values, before, atMs: this.#atMs, absentEnds: false });
      const missing = plan.references.filter(({ table, id }) => !this.#found.ids[table].has(id));
      for (const { missing: fault } of missing) faults.push(...faultsOf(fault, fieldOf));
      return { plan: faults.length > 0 ? null : plan, faults };
    } catch (thrown) {
      return { plan: null, faults: faultsOf(thrown, fieldOf) };
    }
  }

  #held(entity: ValuesEntity, { id = 0 }: Holder): HeldForms {
    const { forms, slices } = this.#found;
    return { forms: forms[entity], slices: slices[entity].get(id) ?? [], zone: "UTC" };
  }
}

function plainOf({ clientData }: Holder): Fields | null {
  return isFields(clientData) ? clientData : null;
}

function placeOf({ forms }: HeldForms, key: string): Placed | undefined {
  const levels = customPath(key).join(".");
  return forms
    .flatMap(placesOf)
    .find(({ form, group, field }) => sameName([form.name, group.name, field.name].join("."), levels));
}

/** Cells hold the values of a list as they hold tags. */
function cellOf({ field }: Placed, value: unknown): unknown {
  if (!field.isList || typeof value !== "string") return value;
  const items = value.split("|").map((item) => item.trim());
  return items.filter((item) => item !== "");
}

/** With the columns of the fields that a problem names. */
function faultsOf(thrown: unknown, fieldOf: ReadonlyMap<string, string>) {
  if (!(thrown instanceof HttpProblem)) throw thrown;
  const faults = thrown.errors ?? [{ path: "", message: thrown.message }];
  return faults.map(({ path, message }) => ({ field: fieldOf.get(path) ?? path, message }));
}
