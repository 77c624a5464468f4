/** Binds the triggers that a service lists to mappers of this gateway. */
import { z } from "zod";
import { caseless } from "#wire/caseless.ts";
import { type ListedTrigger, listedTrigger } from "#wire/listed-trigger.ts";
import { MASTER_DATA } from "#wire/master-data.ts";
import { FILE_TYPES, TRIGGER_STATES } from "#wire/trigger.ts";
import { fires } from "#wire/trigger-match.ts";
import type { ServiceTriggersOptions } from "./options.ts";
import type { Trigger } from "./registry.ts";

/** One trigger of a service: in force here, or malformed. */
export interface ServiceTrigger {
  /** `<service>:<id>` */
  readonly name: string;
  /** Null when it is malformed. */
  readonly trigger: Trigger | null;
  /** Why it is malformed; null otherwise. */
  readonly fault: string | null;
  /** Its state says that it claims nothing. */
  readonly isOff: boolean;
}

/** The settings of an entry `from: service`, with the name of its service. */
export type ServiceRule = Omit<ServiceTriggersOptions, "service" | "every"> & { readonly service: string };

/** Mappers of file types that have a format of their own. */
const MAPPERS_OF_TYPES: Readonly<Record<string, string>> = {
  OpisenseStandard: "standard",
  OpisenseManualLoad: "meter-index",
  IndexIs: "meter-index",
};
/** No mapper has this name. */
const NO_MAPPER = "(none)";
const FAULTS_SHOWN = 3;

/** The names of all triggers of a service begin with it. */
function prefixOf(service: string): string {
  return `${service}:`;
}

/** In the order of the ids, in which the service itself matches. */
export function bindTriggers(listed: readonly unknown[], rule: ServiceRule): readonly ServiceTrigger[] {
  return listed.map((item, index) => bindOne(item, index, rule)).toSorted(byName);
}

const byNumber = new Intl.Collator("en", { numeric: true });

function byName(a: ServiceTrigger, b: ServiceTrigger): number {
  return byNumber.compare(a.name, b.name);
}

function bindOne(item: unknown, index: number, rule: ServiceRule): ServiceTrigger {
  const parsed = listedTrigger.safeParse(item);
  if (!parsed.success) return malformed(item, index, rule, faultWords(parsed.error));
  const listed = parsed.data;
  const name = `${prefixOf(rule.service)}${listed.id}`;
  const isToken = z.guid().safeParse(listed.token).success;
  if (listed.ingestionType === "SendViaHttp" && !isToken)
    return {
      name,
      trigger: null,
      fault: "it is for SendViaHttp, and its token is not a GUID",
      isOff: !fires(listed),
    };
  const { from: _, service, mappings, confirmEmpty: __, ...forAll } = rule;
  const trigger: Trigger = {
    ...forAll,
    ...mapperOf(listed, name, rule),
    name,
    service,
    fileNamePatternMatches: listed.fileNamePatternMatches,
    fileTriggerCombination: listed.fileTriggerCombination,
    fileType: FILE_TYPES.find((type) => type === listed.fileType) ?? "CustomFormat",
    ingestionType: listed.ingestionType,
    triggerType: listed.triggerType,
    state: listed.state,
    token: isToken ? listed.token : undefined,
    metadata: listed.metadata,
  };
  return { name, trigger, fault: null, isOff: !fires(listed) };
}

function mapperOf(listed: ListedTrigger, name: string, { mappings, service }: ServiceRule) {
  const { mapping, fileType = "CustomFormat" } = listed;
  const word = mapping ?? fileType;
  const title = `the trigger ${name}${listed.name === undefined ? "" : ` (${listed.name})`}`;
  const origin = { service, mapping: mapping ?? null, title: listed.name ?? null };
  const bound = Object.hasOwn(mappings, word) ? mappings[word] : undefined;
  if (bound !== undefined) {
    const unbound = `${title} is bound to the mapper ${bound}, which does not exist here`;
    return { mapper: bound, origin: { ...origin, unbound } };
  }
  if (fileType === MASTER_DATA)
    return {
      mapper: NO_MAPPER,
      structure: true as const,
      origin: { ...origin, unbound: `${title} is for master data, which the service itself applies` },
    };
  const own = MAPPERS_OF_TYPES[fileType];
  if (mapping === undefined && own !== undefined)
    return { mapper: own, origin: { ...origin, unbound: `there is no mapper ${own}` } };
  const unbound =
    mapping === undefined
      ? `${title} names no mapping, and there is no mapper for its file type ${fileType} here`
      : `${title} names the mapping ${mapping}, and there is no mapper for it here`;
  return { mapper: mapping ?? NO_MAPPER, origin: { ...origin, unbound } };
}

const identified = caseless(z.object({ id: z.unknown(), state: z.unknown() }));

function malformed(item: unknown, index: number, { service }: ServiceRule, fault: string): ServiceTrigger {
  const { id, state } = identified.safeParse(item).data ?? {};
  const hasId = typeof id === "number" || (typeof id === "string" && id !== "");
  const name = `${prefixOf(service)}${hasId ? id : `(item ${index + 1})`}`;
  const isOff = TRIGGER_STATES.some((one) => one === state && !fires({ state: one }));
  return { name, trigger: null, fault, isOff };
}

function faultWords({ issues }: z.ZodError): string {
  const words = issues.slice(0, FAULTS_SHOWN).map(({ path, message }) => `${path.join(".") || "the item"}: ${message}`);
  return `it cannot be read: ${words.join("; ")}`;
}
