/**
 * Finds the variable of a target as the service does (platform facts, *Push*): among all sources with that identifier,
 * the first variable with that selector wins, in order of source and variable. Further matches are reported.
 */
import type { Clock } from "#core/clock.ts";
import {
  askFor,
  identifiersOf,
  listAccount,
  orAborted,
  type ServiceClient,
  type Structure,
  type VariableFacts,
} from "#wire/client/index.ts";
import type { PushTarget } from "#wire/push.ts";
import { type IdentifierKind, identifierKind, targetWords } from "#wire/target.ts";

export interface MatchedVariable {
  readonly id: number;
  readonly isVersioned: boolean;
  /** Null when the service does not say. */
  readonly unitId: number | null;
}

export type Meaning =
  | { readonly kind: "one"; readonly variable: MatchedVariable }
  /** All of them match the target; the service takes the first. */
  | { readonly kind: "several"; readonly variable: MatchedVariable; readonly among: readonly number[] }
  /** No source or variable has this identifier; or the sources exist, with other variables only. */
  | { readonly kind: "none"; readonly sourceIds: readonly number[]; readonly others: readonly string[] };

export interface ResolveOptions {
  /** Queries again for targets that are known to be missing. */
  readonly fresh?: boolean;
}

const CACHE_MAX = 50_000;
/** A missing variable may be created at any time, and many runs may query for it at once. */
const MISSING_MS = 5_000;
/** From this many identifiers within the lifetime of the cache, the whole account is listed. */
const LIST_FROM = 50;
/** Number of other variables of a source that a message names. */
const OTHERS_SHOWN = 5;
const NOTHING: Meaning = { kind: "none", sourceIds: [], others: [] };

interface Listing {
  /** Null: the account is too large to be listed. */
  readonly structure: Structure | null;
  readonly atMs: number;
}

export class TargetResolver {
  readonly #client: ServiceClient;
  readonly #clock: Clock;
  readonly #rememberMs: number;
  readonly #closed = new AbortController();
  /** Meanings by the text of the target. */
  readonly #known = new Map<string, { readonly meaning: Meaning; readonly untilMs: number }>();
  #account: string | null | undefined;
  /** Identifiers queried since `sinceMs`. */
  #asked = { count: 0, sinceMs: 0 };
  #listing: Listing | null = null;
  #listed: Promise<Listing> | null = null;

  constructor(client: ServiceClient, clock: Clock, rememberMs: number) {
    this.#client = client;
    this.#clock = clock;
    this.#rememberMs = rememberMs;
  }

  /** Meanings by the text of each target. Throws the errors of the client. */
  async resolve(
    targets: readonly PushTarget[],
    signal: AbortSignal,
    { fresh = false }: ResolveOptions = {},
  ): Promise<ReadonlyMap<string, Meaning>> {
    await this.#keepToAccount(signal);
    const found = new Map<string, Meaning>();
    const asked = new Map<IdentifierKind, PushTarget[]>();
    for (const target of targets) {
      const words = targetWords(target);
      if (found.has(words)) continue;
      const known = this.#recall(words, fresh);
      found.set(words, known ?? NOTHING);
      const kind = identifierKind(target);
      if (known !== undefined || kind === null) continue;
      const others = asked.get(kind);
      if (others === undefined) asked.set(kind, [target]);
      else others.push(target);
    }
    for (const [kind, unknown] of asked) {
      for (const [words, meaning] of await this.#ask(kind, unknown, signal)) {
        found.set(words, meaning);
        this.#remember(words, meaning);
      }
    }
    return found;
  }

  /** The account has changed. */
  forget(): void {
    this.#known.clear();
    this.#listing = null;
    this.#listed = null;
  }

  close(): void {
    this.#closed.abort(new Error("the resolver of targets was closed"));
  }

  /** Results from one account do not hold for another. */
  async #keepToAccount(signal: AbortSignal): Promise<void> {
    const { account } = await this.#client.token(signal);
    if (this.#account !== undefined && this.#account !== account) this.forget();
    this.#account = account;
  }

  async #ask(
    kind: IdentifierKind,
    targets: readonly PushTarget[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Meaning>> {
    const found = new Map<string, Meaning>();
    const listing = await this.#listingFor(identifiersOf(kind, targets).length, signal);
    const structure = listing?.structure ?? null;
    const left: PushTarget[] = [];
    for (const target of targets) {
      const meaning = structure === null ? NOTHING : meaningOf(target, kind, structure);
      if (meaning.kind === "none") left.push(target);
      found.set(targetWords(target), meaning);
    }
    // A target is missing only when a current listing does not have it.
    const isNew = listing !== null && this.#clock.monotonicMs() - listing.atMs < MISSING_MS;
    if (left.length === 0 || (structure !== null && isNew)) return found;
    const asked = await askFor(this.#client, kind, left, signal);
    for (const target of left) found.set(targetWords(target), meaningOf(target, kind, asked));
    return found;
  }

  /** Null while few identifiers are queried. */
  async #listingFor(identifiers: number, signal: AbortSignal): Promise<Listing | null> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#asked.sinceMs > this.#rememberMs) this.#asked = { count: 0, sinceMs: nowMs };
    this.#asked.count += identifiers;
    if (this.#listing !== null && nowMs - this.#listing.atMs > this.#rememberMs) this.#listing = null;
    // Of many that an older listing does not have, most may be new.
    const isOld = this.#listing !== null && nowMs - this.#listing.atMs >= MISSING_MS;
    const listAgain = isOld && identifiers > LIST_FROM && this.#listing?.structure !== null;
    if (this.#listing !== null && !listAgain) return this.#listing;
    if (this.#asked.count <= LIST_FROM) return null;
    this.#listed ??= this.#list();
    return orAborted(this.#listed, signal);
  }

  /** Concurrent callers share one listing. */
  #list(): Promise<Listing> {
    const atMs = this.#clock.monotonicMs();
    const listed = listAccount(this.#client, this.#closed.signal).then((structure) => {
      const listing = { structure, atMs };
      if (this.#listed === listed) this.#listing = listing;
      return listing;
    });
    const done = () => {
      if (this.#listed === listed) this.#listed = null;
    };
    listed.then(done, done);
    return listed;
  }

  #recall(words: string, fresh: boolean): Meaning | undefined {
    const known = this.#known.get(words);
    if (known === undefined || known.untilMs <= this.#clock.monotonicMs()) return undefined;
    return fresh && known.meaning.kind === "none" ? undefined : known.meaning;
  }

  #remember(words: string, meaning: Meaning): void {
    const ms = meaning.kind === "none" ? Math.min(MISSING_MS, this.#rememberMs) : this.#rememberMs;
    this.#known.delete(words);
    this.#known.set(words, { meaning, untilMs: this.#clock.monotonicMs() + ms });
    const oldest = this.#known.keys().next();
    if (this.#known.size > CACHE_MAX && oldest.done !== true) this.#known.delete(oldest.value);
  }
}

/** The variable that stores the readings of the target, or null. */
export function variableOf(meaning: Meaning | undefined): MatchedVariable | null {
  return meaning === undefined || meaning.kind === "none" ? null : meaning.variable;
}

function meaningOf(target: PushTarget, kind: IdentifierKind, structure: Structure): Meaning {
  const value = target[kind];
  if (value === undefined) return NOTHING;
  if (kind === "variableId") {
    const variable = structure.variable(Number(value));
    return variable === undefined ? NOTHING : { kind: "one", variable: matched(variable) };
  }
  const sourceIds = structure.sourcesOf(kind, value).toSorted((a, b) => a - b);
  const variables = sourceIds.flatMap((id) => structure.variablesOf(id).toSorted((a, b) => a.id - b.id));
  const [first, ...others] = variables.filter((variable) => selects(target, variable));
  if (first === undefined) return { kind: "none", sourceIds, others: selectorsOf(target, variables) };
  const variable = matched(first);
  if (others.length === 0) return { kind: "one", variable };
  return { kind: "several", variable, among: [first.id, ...others.map(({ id }) => id)] };
}

function matched({ id, isVersioned, unitId }: VariableFacts): MatchedVariable {
  return { id, isVersioned: isVersioned === true, unitId: unitId ?? null };
}

function selects(target: PushTarget, variable: VariableFacts): boolean {
  return (
    (target.mappingConfig === undefined || variable.mappingConfig === target.mappingConfig) &&
    (target.variableTypeId === undefined || variable.variableTypeId === target.variableTypeId)
  );
}

/** Selectors by which the existing variables could be named. */
function selectorsOf(target: PushTarget, variables: readonly VariableFacts[]): readonly string[] {
  const field = target.mappingConfig === undefined ? "variableTypeId" : "mappingConfig";
  const selectors = variables.map((variable) => variable[field]).filter((one) => one !== null && one !== undefined);
  return [...new Set(selectors.map(String))].slice(0, OTHERS_SHOWN);
}
