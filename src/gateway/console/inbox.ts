/** Everything that needs attention, in groups of one cause: read in parts, and shared by all who ask. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { type SharedQuery, shareQuery } from "#core/shared-query.ts";
import { commonText } from "#core/text.ts";
import type { GatewayConfig } from "../config.ts";
import type { RestingCase, UnmatchedCount } from "../ledger/ledger.ts";
import type { Arrival } from "../model.ts";
import type { Action, AttentionGroup, AttentionItem } from "../operations/api/attention.ts";
import type { Concern } from "../operations/attention.ts";
import type { AttentionKind } from "../operations/attention-kinds.ts";
import { UNMATCHED_CODE, UNMATCHED_HINT } from "../operations/state-of-work.ts";
import { ATTENTION_STATES } from "../states.ts";
import type { QueryParts } from "./parts.ts";

export type InboxParts = Pick<QueryParts, "ledger" | "concerns" | "clock">;

/** Runs, and unmatched files of a drop, that are counted. */
const RUNS_MAX = 50_000;
const UNMATCHED_MAX = 100_000;
const TITLE_MAX = 300;
const NAMES_MAX = 20;
/** Runs that are worded before other work of the process has its turn. */
const PART = 1_000;
/** Milliseconds: pages that ask one after another share what was found. */
const SHARED_MS = 1_000;
/** Reading takes this share of the time at most, however often pages ask. */
const SHARE = 1 / 20;

/** Kinds beside files, what stops most first; files come behind them. */
const STOPS: readonly AttentionKind[] = ["spool", "service", "drop", "trigger", "lane", "configuration", "finish"];

function rankOf({ kind }: Facts): number {
  const rank = STOPS.indexOf(kind);
  return rank === -1 ? STOPS.length : rank;
}

/** One thing that needs attention, before its details are read. */
export interface Member {
  readonly key: string;
  readonly kind: AttentionKind;
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

type Facts = Omit<AttentionGroup, "examples">;

export interface Group extends Facts {
  /** Newest first; `after`: `next` of the part before. */
  part(after: string | undefined, limit: number): Promise<GroupPart>;
}

export interface GroupPart {
  readonly members: readonly Member[];
  readonly next: string | null;
}

export interface Inbox {
  readonly groups: readonly Group[];
  readonly total: number;
  readonly isCut: boolean;
}

export interface SharedInbox extends Pick<SharedQuery<Inbox>, "next"> {
  /** As it was a moment ago, or somewhat longer when reading it takes long. */
  recent(): Promise<Inbox>;
}

/** Shared by the handlers and the live updates, which count it. */
export function shareInbox(config: GatewayConfig, parts: InboxParts): SharedInbox {
  const known: KnownCases = new Map();
  let tookMs = 0;
  const query = shareQuery(async () => {
    const beganMs = performance.now();
    const inbox = await readInbox(config, parts, known);
    // By the clock of the shared query, which counts the age of what was read.
    tookMs = performance.now() - beganMs;
    return inbox;
  });
  return { next: query.next, recent: () => query.within(Math.max(SHARED_MS, tookMs / SHARE)) };
}

type KnownCase = RestingCase & { readonly member: Member };
/** Cases as they were read last, with their members: most stay from one time to the next. */
type KnownCases = Map<string, KnownCase>;

async function readInbox(config: GatewayConfig, { ledger, concerns }: InboxParts, known: KnownCases): Promise<Inbox> {
  const runs = await ledger.files.resting(ATTENTION_STATES, RUNS_MAX, known);
  const cases: KnownCase[] = [];
  for (let at = 0; at < runs.length; at += PART) {
    for (const one of runs.slice(at, at + PART))
      cases.push("member" in one ? (one as KnownCase) : { ...one, member: memberOfRun(one) });
    await setImmediate();
  }
  known.clear();
  for (const one of cases) known.set(one.run, one);
  const members = [...cases.map(({ member }) => member), ...(await concerns()).map(memberOfConcern)];
  const groups: Group[] = [...Map.groupBy(members, ({ cause }) => cause)].map(([cause, some]) =>
    groupOf(digest(cause), some),
  );
  let isCut = runs.length === RUNS_MAX;
  for (const { name } of config.drops) {
    const counted = await ledger.files.unmatchedCount(name, UNMATCHED_MAX);
    isCut ||= counted.count === UNMATCHED_MAX;
    if (counted.count > 0) groups.push(await unmatchedGroup(name, counted, ledger));
  }
  groups.sort((a, b) => rankOf(a) - rankOf(b) || b.count - a.count);
  return { groups, total: groups.reduce((sum, { count }) => sum + count, 0), isCut };
}

function groupOf(key: string, members: readonly Member[]): Group {
  return {
    ...{ key, title: titleOf(members), ...factsOf(members) },
    async part(after, limit) {
      const begin = beginAfter(after, members);
      const part = members.slice(begin, begin + limit);
      return {
        members: part,
        next: begin + limit < members.length ? `${begin + limit} ${part.at(-1)?.key ?? ""}` : null,
      };
    },
  };
}

/** `after`: how many members were before, and the key of the last, which may no longer be in the group. */
function beginAfter(after: string | undefined, members: readonly Member[]): number {
  if (after === undefined) return 0;
  const [, count = "0", key = ""] = /^(\d+) (.*)$/s.exec(after) ?? [];
  const found = members.findIndex((member) => member.key === key);
  return found === -1 ? Math.min(Number(count), members.length) : found + 1;
}

/** Its files are read when they are shown, since a sender may have sent very many. */
async function unmatchedGroup(
  drop: string,
  { count, oldest, newest }: UnmatchedCount,
  { files }: Pick<InboxParts["ledger"], "files">,
): Promise<Group> {
  const part: Group["part"] = async (after, limit) => {
    const before = after === undefined ? undefined : Number(after);
    const arrivals = await files.unmatched(drop, limit + 1, Number.isSafeInteger(before) ? before : undefined);
    const shown = arrivals.slice(0, limit);
    const isLast = arrivals.length <= limit;
    return { members: shown.map(memberOfUnmatched), next: isLast ? null : String(shown.at(-1)?.id) };
  };
  const { members } = count === 1 ? await part(undefined, 1) : { members: [] };
  return {
    key: digest(unmatchedCause(drop)),
    title: members[0]?.text ?? commonText('No trigger claims "…"'),
    ...{
      kind: "unmatched",
      hint: UNMATCHED_HINT,
      code: UNMATCHED_CODE,
      mapper: null,
      count,
      oldest,
      newest,
      drops: [drop],
      triggers: [],
    },
    part,
  };
}

function memberOfRun(one: RestingCase): Member {
  const { run, state, message, hint, code, mapper, changedAt, drop, trigger, arrivalId } = one;
  const facts = { hint, code, drop, trigger, since: changedAt, of: { file: arrivalId } };
  // Only what the mapper says depends on the mapper.
  const isOfMapper = state === "quarantined" && code !== null && /^HG-(MAP|FILE)-/.test(code);
  const kind = state as AttentionKind;
  return withCause({ key: keyOf(run, state), kind, text: message, ...facts, mapper: isOfMapper ? mapper : null });
}

export function keyOf(run: string, state: string): string {
  return `run ${run} ${state}`;
}

function memberOfUnmatched(arrival: Arrival): Member {
  const { id, drop, path, reason, changedAt } = arrival;
  const key = `unmatched ${id}`;
  const item: AttentionItem = {
    ...NOTHING,
    ...{ key, kind: "unmatched", state: arrival.state, file: id, drop, path, since: changedAt, reason },
    ...{ code: UNMATCHED_CODE, hint: UNMATCHED_HINT, currentPlace: path, actions: ["forget"] },
  };
  const facts = { hint: UNMATCHED_HINT, code: UNMATCHED_CODE, mapper: null, since: changedAt, drop, trigger: null };
  // The verdicts of the triggers, which the item has, are too long for a title.
  const text = `No trigger claims "${path}"`;
  return { key, kind: "unmatched", text, ...facts, of: { item }, cause: unmatchedCause(drop) };
}

function unmatchedCause(drop: string): string {
  return JSON.stringify(["unmatched", drop]);
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

function factsOf(members: readonly Member[]): Omit<Facts, "key" | "title"> {
  let oldest: string | null = null;
  let newest: string | null = null;
  for (const { since } of members) {
    if (since === null) continue;
    if (oldest === null || since < oldest) oldest = since;
    if (newest === null || since > newest) newest = since;
  }
  const names = (values: readonly (string | null)[]) =>
    [...new Set(values)]
      .filter((value) => value !== null)
      .sort()
      .slice(0, NAMES_MAX);
  const [first] = members;
  return {
    kind: first?.kind ?? "quarantined",
    hint: first?.hint ?? null,
    code: first?.code ?? null,
    mapper: first?.mapper ?? null,
    count: members.length,
    ...{ oldest, newest },
    drops: names(members.map(({ drop }) => drop)),
    triggers: names(members.map(({ trigger }) => trigger)),
  };
}
