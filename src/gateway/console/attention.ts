/** The inbox of the console: what needs attention, grouped by its cause. */
import { createHash } from "node:crypto";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { ListedFile, RestingCase } from "../../ledger/ledger.ts";
import type { Arrival } from "../../model.ts";
import type { Action, AttentionItem, attentionEndpoints, ConcernKind } from "../../operations/api/attention.ts";
import type { HandlersOf } from "../../operations/api/endpoint.ts";
import type { Concern } from "../../operations/attention.ts";
import type { AttentionKind } from "../../operations/attention-kinds.ts";
import { unknownSubject } from "../../operations/problems.ts";
import { allActionsOf, currentPlace } from "../../operations/run-actions.ts";
import { ATTENTION_STATES } from "../../states.ts";
import { isoInstant } from "../../support/clock.ts";
import { commonText } from "../../support/common-text.ts";
import { type SharedQuery, shareQuery } from "../../support/shared-query.ts";
import type { QueryParts } from "../operator-queries.ts";

export type AttentionParts = Pick<QueryParts, "ledger" | "drops" | "concerns" | "clock">;

/** Runs, and unmatched files of a drop, that are counted. */
const RUNS_MAX = 50_000;
const UNMATCHED_MAX = 10_000;
const EXAMPLES = 3;
const TITLE_MAX = 300;
/** Pages that ask one after another share what was found. */
const SHARED_MS = 1_000;

/** One thing that needs attention, before its details are read. */
export interface Member {
  readonly key: string;
  readonly kind: ConcernKind;
  readonly text: string;
  /** Members of one group have the same. */
  readonly cause: string;
  readonly hint: string | null;
  readonly code: string | null;
  /** Part of the cause, where the mapper refused the file. */
  readonly mapper: string | null;
  readonly since: string | null;
  readonly drop: string | null;
  readonly trigger: string | null;
  /** The file whose run it is; otherwise the item is complete. */
  readonly of: { readonly file: number } | { readonly item: AttentionItem };
}

export interface Group {
  readonly key: string;
  readonly title: string;
  /** Newest first. */
  readonly members: readonly Member[];
}

export interface Inbox {
  readonly groups: readonly Group[];
  readonly total: number;
  readonly isCut: boolean;
}

/** Shared by the handlers and the live updates, which count it. */
export function shareInbox(config: GatewayConfig, parts: AttentionParts): SharedQuery<Inbox> {
  const known: KnownCases = new Map();
  return shareQuery(() => readInbox(config, parts, known));
}

export function attentionHandlers(
  config: GatewayConfig,
  parts: AttentionParts,
  inbox = shareInbox(config, parts),
): HandlersOf<typeof attentionEndpoints> {
  const details = (members: readonly Member[]) => itemsOf(members, config, parts);
  return {
    async attention() {
      const { groups, total, isCut } = await inbox.within(SHARED_MS);
      const examples = await details(groups.flatMap(({ members }) => members.slice(0, EXAMPLES)));
      return {
        ...{ total, isCut, at: isoInstant(parts.clock.now()) },
        groups: groups.map(({ key, title, members }) => ({
          ...{ key, title },
          ...factsOf(members),
          examples: members.slice(0, EXAMPLES).flatMap((member) => examples.get(member.key) ?? []),
        })),
      };
    },
    async attentionItems({ query: { group: key, after, limit } }) {
      const group = (await inbox.within(SHARED_MS)).groups.find((one) => one.key === key);
      if (group === undefined)
        throw unknownSubject({
          operation: "list attention",
          subject: key,
          message: "nothing of this group needs attention now",
        });
      const begin = beginAfter(after, group.members);
      const part = group.members.slice(begin, begin + limit);
      const items = await details(part);
      return {
        items: part.flatMap((member) => items.get(member.key) ?? []),
        next: begin + limit < group.members.length ? `${begin + limit} ${part.at(-1)?.key ?? ""}` : null,
      };
    },
  };
}

type KnownCase = RestingCase & { readonly member: Member };
/** Cases as they were read last, with their members: most stay from one time to the next. */
type KnownCases = Map<string, KnownCase>;

/** `after`: how many members were before, and the key of the last, which may no longer be in the group. */
function beginAfter(after: string | undefined, members: readonly Member[]): number {
  if (after === undefined) return 0;
  const [, count = "0", key = ""] = /^(\d+) (.*)$/s.exec(after) ?? [];
  const found = members.findIndex((member) => member.key === key);
  return found === -1 ? Math.min(Number(count), members.length) : found + 1;
}

async function readInbox(
  config: GatewayConfig,
  { ledger, concerns }: AttentionParts,
  known: KnownCases,
): Promise<Inbox> {
  const runs = await ledger.files.resting(ATTENTION_STATES, RUNS_MAX, known);
  const cases = runs.map((one) => ("member" in one ? (one as KnownCase) : { ...one, member: memberOfRun(one) }));
  known.clear();
  for (const one of cases) known.set(one.run, one);
  const members: Member[] = cases.map(({ member }) => member);
  let isCut = runs.length === RUNS_MAX;
  for (const { name } of config.drops) {
    const unmatched = await ledger.arrivalsIn(name, ["unmatched"], UNMATCHED_MAX);
    isCut ||= unmatched.length === UNMATCHED_MAX;
    members.push(...unmatched.map(memberOfUnmatched).reverse());
  }
  members.push(...(await concerns()).map(memberOfConcern));
  const groups = [...Map.groupBy(members, ({ cause }) => cause)]
    .map(([cause, some]) => ({ key: digest(cause), title: titleOf(some), members: some }))
    .sort((a, b) => b.members.length - a.members.length);
  return { groups, total: members.length, isCut };
}

function memberOfRun(one: RestingCase): Member {
  const { run, state, message, hint, code, mapper, changedAt, drop, trigger, arrivalId } = one;
  const facts = { hint, code, drop, trigger, since: changedAt, of: { file: arrivalId } };
  // Only what the mapper says depends on the mapper.
  const isOfMapper = state === "quarantined" && code !== null && /^HG-(MAP|FILE)-/.test(code);
  const kind = state as AttentionKind;
  return withCause({ key: keyOf(run, state), kind, text: message, ...facts, mapper: isOfMapper ? mapper : null });
}

function keyOf(run: string, state: string): string {
  return `run ${run} ${state}`;
}

function memberOfUnmatched(arrival: Arrival): Member {
  const { id, drop, path, reason, changedAt } = arrival;
  const key = `unmatched ${id}`;
  const item: AttentionItem = {
    ...NOTHING,
    ...{ key, kind: "unmatched", state: arrival.state, file: id, drop, path, since: changedAt, reason },
    ...{ currentPlace: path, actions: ["forget"] },
  };
  const facts = { hint: null, code: null, mapper: null, since: changedAt, drop, trigger: null };
  // The verdicts of the triggers, which the item has, are too long for a title.
  const text = `No trigger claims "${path}"`;
  return { key, kind: "unmatched", text, ...facts, of: { item }, cause: JSON.stringify(["unmatched", drop]) };
}

const NOTHING = {
  ...{ state: null, run: null, file: null, drop: null, path: null, trigger: null, mapper: null, since: null },
  ...{ code: null, hint: null, place: null, rejectedByReason: [], targets: [], points: null, discards: 0 },
  currentPlace: null,
} as const;

/** Actions on concerns that are not about a run at rest. */
const ACTIONS_OF: Readonly<Partial<Record<AttentionKind, readonly Action[]>>> = { lane: ["cancel"], drop: ["pause"] };

function memberOfConcern({ key, kind, text, facts }: Concern): Member {
  const fact = (name: string) => (facts[name] === undefined || facts[name] === null ? null : String(facts[name]));
  const shared = { drop: fact("drop"), trigger: fact("trigger"), code: fact("code"), since: fact("since") };
  const item: AttentionItem = {
    ...NOTHING,
    ...{ key, kind, ...shared, run: fact("run"), path: fact("file"), reason: text },
    ...{ currentPlace: fact("place"), actions: [...(ACTIONS_OF[kind] ?? [])] },
  };
  return withCause({ key, kind, text, hint: null, mapper: null, ...shared, of: { item } });
}

function withCause(member: Omit<Member, "cause">): Member {
  const { kind, code, mapper, text } = member;
  return { ...member, cause: JSON.stringify([kind, code, mapper, commonText(text)]) };
}

function digest(cause: string): string {
  return createHash("sha256").update(cause).digest("hex").slice(0, 24);
}

/** The whole text where all members have the same. */
function titleOf(members: readonly Member[]): string {
  const text = members[0]?.text ?? "";
  const title = members.every((one) => one.text === text) ? text : commonText(text);
  return title.length > TITLE_MAX ? `${title.slice(0, TITLE_MAX - 1)}…` : title;
}

const NAMES_MAX = 20;

function factsOf(members: readonly Member[]) {
  const times = members.flatMap(({ since }) => since ?? []).sort();
  const names = (values: readonly (string | null)[]) =>
    [...new Set(values.filter((value) => value !== null))].sort().slice(0, NAMES_MAX);
  const [first] = members;
  return {
    kind: first?.kind ?? "quarantined",
    hint: first?.hint ?? null,
    code: first?.code ?? null,
    mapper: first?.mapper ?? null,
    count: members.length,
    oldest: times[0] ?? null,
    newest: times.at(-1) ?? null,
    drops: names(members.map(({ drop }) => drop)),
    triggers: names(members.map(({ trigger }) => trigger)),
  };
}

/** Without those whose file was forgotten meanwhile. */
async function itemsOf(
  members: readonly Member[],
  { triggers }: GatewayConfig,
  { ledger }: Pick<AttentionParts, "ledger">,
): Promise<ReadonlyMap<string, AttentionItem>> {
  const files = members.flatMap(({ of }) => ("file" in of ? [of.file] : []));
  const listed = new Map((await ledger.files.byId(files)).map((one) => [one.arrival.id, one]));
  const hasTemplate = new Set(triggers.flatMap(({ name, provision }) => (provision === undefined ? [] : [name])));
  const items = new Map<string, AttentionItem>();
  for (const { key, kind, of } of members) {
    if ("item" in of) items.set(key, of.item);
    else {
      const found = listed.get(of.file);
      const item = found === undefined ? null : itemOfRun(key, kind, found, hasTemplate);
      if (item !== null) items.set(key, item);
    }
  }
  return items;
}

function itemOfRun(
  key: string,
  kind: ConcernKind,
  { arrival, run }: ListedFile,
  hasTemplate: ReadonlySet<string>,
): AttentionItem | null {
  // It was replayed, or its state has changed, since the inbox was read.
  if (run === null || keyOf(run.id, run.state) !== key) return null;
  const { id, drop, path, state, reason, points, binding, changedAt } = run;
  return {
    ...{ key, kind, state, run: id, file: arrival.id, drop, path, points, since: changedAt },
    trigger: binding.trigger,
    mapper: `${binding.mapper.name} ${binding.mapper.version}`,
    code: reason?.code ?? null,
    reason: reason?.message ?? "",
    hint: reason?.hint ?? null,
    place: reason?.place ?? null,
    rejectedByReason: [...(reason?.rejectedByReason ?? [])],
    targets: [...(reason?.targets ?? [])],
    discards: reason?.discards ?? 0,
    currentPlace: currentPlace(run, arrival.goneAt),
    actions: [...allActionsOf(run, hasTemplate.has(binding.trigger))],
  };
}
