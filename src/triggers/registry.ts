/** The triggers in force. They can be replaced while the gateway runs; the registry always returns the current ones. */
import { basename } from "node:path/posix";
import type { IngestionType } from "../wire/trigger.ts";
import { matchToken, matchTrigger } from "./match.ts";
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

export function createRegistry(triggers: readonly RegistryEntry[]): TriggerRegistry {
  let current = [...triggers];
  return {
    claim: (fileName, ingestionType, drop, sender) =>
      claim(current, { fileName: basename(fileName), ingestionType, drop, sender }),
    replace: (next) => {
      current = [...next];
    },
    list: () => current,
  };
}

/** Why no trigger claims a file, in words, for its arrival: `monthly: StartsWith "acme_": no · daily: …`. */
export function whyUnclaimed(claim: Claim): string {
  if (claim.verdicts.length === 0) return "no trigger is configured";
  return claim.verdicts.map(({ trigger, words }) => `${trigger}: ${words}`).join(" · ");
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
    const verdict = "unknown" in entry ? unknownVerdict(entry) : judge(entry, question);
    verdicts.push(verdict);
    if ("unknown" in entry) {
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

function judge(trigger: Trigger, { fileName, ingestionType, drop, sender }: Question): TriggerVerdict {
  if (drop !== undefined && trigger.drops?.includes(drop) === false) {
    const words = `it is for files at ${trigger.drops.join(", ")}, and this one is at ${drop}`;
    return { trigger: trigger.name, matches: false, words };
  }
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
