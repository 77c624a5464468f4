/** The triggers in force. They can be replaced while the gateway runs; the registry always returns the current ones. */
import { basename } from "node:path/posix";
import type { IngestionType } from "#wire/trigger.ts";
import { matchToken, matchTrigger } from "#wire/trigger-match.ts";
import type { TriggerOptions } from "./options.ts";

export type Trigger = Readonly<TriggerOptions> & {
  /** Present for a trigger that comes from a service. */
  readonly origin?: TriggerOrigin;
  /** Its files are master data. */
  readonly structure?: true;
};

interface TriggerOrigin {
  readonly service: string;
  /** The mapping that the service's trigger names. */
  readonly mapping: string | null;
  /** The name that the trigger has at its service. */
  readonly title: string | null;
  /** Why its files cannot be converted, in case there is no such mapper here. */
  readonly unbound: string;
}

/** Stands for triggers that cannot be applied: which files they would claim is not known. */
interface UnknownTriggers {
  readonly name: string;
  readonly unknown: string;
  /** Later triggers wait as well: they claim nothing that these may claim. */
  readonly blocks: boolean;
  /** Drops whose files these may claim; all of them when left out. */
  readonly drops?: readonly string[] | undefined;
}

export type RegistryEntry = Trigger | UnknownTriggers;

interface TriggerVerdict {
  readonly trigger: string;
  readonly matches: boolean;
  readonly words: string;
}

export interface Claim {
  /** The first in configured order that matches, or null. */
  readonly claimed: Trigger | null;
  /** No trigger claims the file, but one that cannot be applied now may: no rule for unmatched files applies. */
  readonly undecided: boolean;
  /** Names of later triggers that match as well; worth a line in the log. */
  readonly others: readonly string[];
  /** One for each trigger, in configured order. */
  readonly verdicts: readonly TriggerVerdict[];
}

/** The known facts about a file that came by HTTP. */
interface Sender {
  /** Triggers of other services are left out. */
  readonly service: string;
  /** The guid of the request: the trigger's `token` decides instead of the file name. */
  readonly token?: string | undefined;
}

export interface TriggerRegistry {
  /** `fileName` may be a path: its base name counts. Without `drop`, no trigger is left out because of its `drops`. */
  claim(fileName: string, ingestionType: IngestionType, drop?: string, sender?: Sender): Claim;
  replace(triggers: readonly RegistryEntry[]): void;
  list(): readonly RegistryEntry[];
}

/** `walled`: a file is judged by the triggers for its drop alone, and nothing is said of those for others. */
export function createRegistry(triggers: readonly RegistryEntry[], { walled = false } = {}): TriggerRegistry {
  let current: readonly RegistryEntry[] = [];
  let byDrop = new Map<string, RegistryEntry[]>();
  const replace = (next: readonly RegistryEntry[]) => {
    current = [...next];
    if (walled) byDrop = entriesByDrop(current);
  };
  replace(triggers);
  return {
    claim(fileName, ingestionType, drop, sender) {
      const isForAll = !walled || drop === undefined;
      const entries = isForAll ? current : (byDrop.get(drop) ?? current.filter((entry) => takesFrom(entry, drop)));
      return claim(entries, { fileName: basename(fileName), ingestionType, drop, sender });
    },
    replace,
    list: () => current,
  };
}

/** For each drop that a trigger names, in configured order. */
function entriesByDrop(entries: readonly RegistryEntry[]): Map<string, RegistryEntry[]> {
  const byDrop = new Map<string, RegistryEntry[]>();
  for (const { drops = [] } of entries) for (const drop of drops) byDrop.set(drop, []);
  for (const entry of entries) for (const drop of entry.drops ?? byDrop.keys()) byDrop.get(drop)?.push(entry);
  return byDrop;
}

function takesFrom({ drops }: RegistryEntry, drop: string | undefined): boolean {
  return drop === undefined || drops?.includes(drop) !== false;
}

/** Triggers that the reason of an unclaimed file names. */
const NAMED_MAX = 20;

/** Why no trigger claims a file, in words, for its arrival: `monthly: StartsWith "acme_": no · daily: …`. */
export function whyUnclaimed({ verdicts }: Claim): string {
  if (verdicts.length === 0) return "no trigger is configured";
  const named = verdicts.slice(0, NAMED_MAX).map(({ trigger, words }) => `${trigger}: ${words}`);
  const more = verdicts.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(" · ");
}

/** Runs of one lane keep their order. Lanes of two services are distinct. */
export function laneOf(trigger: Pick<Trigger, "name" | "lane">, drop: string, service: string): string {
  return JSON.stringify(trigger.lane === undefined ? [service, drop, trigger.name] : [service, trigger.lane]);
}

interface Question {
  readonly fileName: string;
  readonly ingestionType: IngestionType;
  readonly drop: string | undefined;
  readonly sender: Sender | undefined;
}

function claim(entries: readonly RegistryEntry[], question: Question): Claim {
  const verdicts: TriggerVerdict[] = [];
  const matching: Trigger[] = [];
  let blocked = false;
  let unknown = false;
  for (const entry of entries) {
    const verdict = elsewhere(entry, question) ?? ("unknown" in entry ? unknownVerdict(entry) : judge(entry, question));
    verdicts.push(verdict);
    if ("unknown" in entry) {
      if (!takesFrom(entry, question.drop)) continue;
      unknown = true;
      blocked ||= entry.blocks && matching.length === 0;
    } else if (verdict.matches) matching.push(entry);
  }
  const [first, ...others] = blocked ? [] : matching;
  const claimed = first ?? null;
  return { claimed, undecided: claimed === null && unknown, others: others.map(({ name }) => name), verdicts };
}

function unknownVerdict({ name, unknown }: UnknownTriggers): TriggerVerdict {
  return { trigger: name, matches: false, words: unknown };
}

function elsewhere(entry: RegistryEntry, { drop }: Question): TriggerVerdict | null {
  if (takesFrom(entry, drop)) return null;
  const words = `it is for files at ${entry.drops?.join(", ")}, and this one is at ${drop}`;
  return { trigger: entry.name, matches: false, words };
}

function judge(trigger: Trigger, { fileName, ingestionType, sender }: Question): TriggerVerdict {
  if (sender !== undefined && trigger.service !== undefined && trigger.service !== sender.service) {
    const words = `it is for the service ${trigger.service}, and this sender's data goes to ${sender.service}`;
    return { trigger: trigger.name, matches: false, words };
  }
  const verdict =
    sender?.token === undefined ? matchTrigger(trigger, fileName, ingestionType) : matchToken(trigger, sender.token);
  return {
    trigger: trigger.name,
    matches: verdict.matches,
    get words() {
      return verdict.words;
    },
  };
}
