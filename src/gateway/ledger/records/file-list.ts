/**
 * Lists and finds files. A list without an index for its filter goes through files or runs in parts, newest first, so
 * that no statement occupies the process for long and ingestion pays for few indexes; it ends early after a while.
 */
import { setImmediate } from "node:timers/promises";
import { row, rowEach, rows, type Steps, type Value } from "#core/sql/statements.ts";
import type { Arrival, ArrivalState, FileStanding, RunState } from "../../model.ts";
import { ALL_RUN_STATES, ARRIVAL_STATES, RUN_STATES, runStatesThat } from "../../states.ts";
import type { CountedFiles, FileFilter, FileList, FileListPart, ListedFile, UnmatchedCount } from "../file-list.ts";
import type { TargetKey } from "../ledger.ts";
import { arrivalsById } from "./arrivals.ts";
import { eventsAfter } from "./events.ts";
import { digestOf } from "./lanes.ts";
import { replacedRuns, restingCases } from "./resting-cases.ts";
import { type ArrivalRow, type RunCells, SELECT_RUN, toArrival, toRun } from "./rows.ts";
import { literal, literals, runIndexOf } from "./run-indexes.ts";
import type { Store } from "./store.ts";
import { identifiedFiles, lifeOf } from "./trace.ts";

/** A trigger has a binding for each change of its settings or its mapper. */
const BINDINGS_MAX = 20;
/** Nearly all runs come to these states, so that the index of a trigger finds more in its first entries. */
const USUAL_STATES = runStatesThat(({ isAccepted, needsAttention }) => isAccepted && !needsAttention);

/** More names than these begin so often that the newest files have enough of them. */
const NAMED_MAX = 1_000;
const LAST_CHARACTER = "\u{10ffff}";

// The condition of the index `arrivals_unmatched`.
const UNMATCHED = "drop_name = ? AND gone_at IS NULL AND state = 'unmatched' AND expected = 0";

/** Arrivals or runs of one part; the first part is small, since most lists end in it. */
const FIRST_PART = 2_000;
const PART = 20_000;
/** A run costs as much as several arrivals, since its file is read too. */
const RUNS_OF_ARRIVALS = 0.25;
/** Milliseconds after which a list ends early. */
const LONGEST_MS = 250;

export function fileList(store: Store): FileList {
  return {
    list: (filter) => list(store, filter),
    identified: (query, limit) =>
      store.read(function* () {
        return yield* listed(yield* identifiedFiles(query, limit, store.dialect));
      }),
    byId: (ids) => store.read(() => listed(ids)),
    life: (id) =>
      store.read(function* () {
        const [life] = yield* lifeOf(id);
        return life ?? null;
      }),
    versions: ({ id, drop, path, parentId }, limit) =>
      store.read(function* () {
        const where = "name = (SELECT name FROM arrivals WHERE id = ?) AND path = ? AND drop_name = ? AND id <> ?";
        const parent = parentId === null ? "parent_id IS NULL" : "parent_id IS NOT NULL";
        return yield* counted(`${where} AND ${parent}`, [id, path, drop, id], "id DESC", limit);
      }),
    entries: (id, limit) => store.read(() => counted("parent_id = ?", [id], "id", limit)),
    resting: (states, limit, known = new Map()) => restingCases(store, states, limit, known),
    unmatchedCount: (drop, most) => store.read(() => unmatchedCount(drop, most)),
    unmatched: (drop, limit, before = Number.MAX_SAFE_INTEGER) => store.look(() => unmatched(drop, limit, before)),
    eventsAfter: (after, limit) => store.look(() => eventsAfter(after, limit)),
    replaced: (runs) => store.look(() => replacedRuns(store, runs)),
  };
}

async function list(store: Store, filter: FileFilter): Promise<FileListPart> {
  const until = store.clock.monotonicMs() + LONGEST_MS;
  const search = await store.read(() => beginSearch(store, filter));
  const found: (number | string)[] = [];
  const isByRun = search.isByRun;
  let next = filter.after ?? null;
  for (let size = FIRST_PART; ; size = PART) {
    const part = await store.look(() => search.part(next, size, filter.limit - found.length));
    found.push(...part.found);
    next = part.next;
    if (next === null || found.length >= filter.limit || store.clock.monotonicMs() >= until) break;
    // Other work of the process goes first.
    await setImmediate();
  }
  const isCut = next !== null && found.length < filter.limit;
  return await store.read(function* () {
    const searchedTo = next === null ? null : yield* reachedAt(next, isByRun);
    const named = isCut && filter.after === undefined && !isByRun ? yield* namedBeyond(store, filter, found) : [];
    return { files: yield* listed([...found, ...named]), next, searchedTo };
  });
}

/** The first files of a condition on arrivals, and how many it has. */
function* counted(where: string, values: readonly Value[], order: string, limit: number): Steps<CountedFiles> {
  const found = yield* ids(`SELECT id FROM arrivals WHERE ${where} ORDER BY ${order} LIMIT ?`, [...values, limit]);
  const all = yield* row<{ count: number }>(`SELECT count(*) AS count FROM arrivals WHERE ${where}`, ...values);
  return { files: yield* listed(found), total: Number(all?.count ?? 0) };
}

/** Beyond the files that were searched, those whose names begin with the text, newest first. */
function* namedBeyond(store: Store, filter: FileFilter, found: readonly (number | string)[]): Steps<readonly number[]> {
  if (filter.text === undefined) return [];
  const { where, values } = conditionOf(store, filter, [1, Number.MAX_SAFE_INTEGER]);
  const named = yield* namedIds(filter.text);
  const more = named.filter((id) => !found.includes(id)).sort((a, b) => b - a);
  const fitting: number[] = [];
  for (const id of more) {
    if (found.length + fitting.length >= filter.limit) break;
    fitting.push(...(yield* ids(`SELECT id FROM arrivals WHERE id = ? AND ${where}`, [id, ...values])));
  }
  return fitting;
}

/** When the file was seen, or its run created, at which a search continues. */
function* reachedAt(next: string, isByRun: boolean): Steps<string | null> {
  const found = isByRun
    ? yield* row<{ at: string }>("SELECT created_at AS at FROM runs WHERE id >= ? ORDER BY id LIMIT 1", next)
    : yield* row<{ at: string }>("SELECT seen_at AS at FROM arrivals WHERE id >= ? ORDER BY id LIMIT 1", Number(next));
  return found?.at ?? null;
}

interface PartFound {
  /** Ids of arrivals, or of runs. */
  readonly found: readonly (number | string)[];
  readonly next: string | null;
}

interface Search {
  readonly isByRun: boolean;
  /** Takes the place to continue from, the size of the part, and how many files at most. */
  part(after: string | null, size: number, limit: number): Steps<PartFound>;
}

/** Reads the facts that a search needs before its first part. */
function* beginSearch(store: Store, filter: FileFilter): Steps<Search> {
  const ends = yield* row<{ first: number | null; last: number | null }>(
    "SELECT (SELECT min(id) FROM arrivals) AS first, (SELECT max(id) FROM arrivals) AS last",
  );
  const [first, last] = [ends?.first ?? 1, ends?.last ?? 0];
  const from = filter.from === undefined ? first : yield* seenAtOrAfter(filter.from, first, last);
  const to = filter.to === undefined ? last : (yield* seenAtOrAfter(filter.to, first, last)) - 1;
  const candidates = yield* candidatesOf(store, filter);
  if (candidates === null)
    return {
      isByRun: false,
      part: (after, size, limit) => searchArrivals(store, filter, { from, to, after, size, limit }),
    };
  const condition = conditionOf(store, filter, [from, to]);
  return {
    isByRun: true,
    part: (after, arrivals, limit) =>
      candidatesIn(store, candidates, condition, { after, size: arrivals * RUNS_OF_ARRIVALS, limit }),
  };
}

/** The runs by which the files are found; null for a filter that is not about runs. */
function* candidatesOf(store: Store, filter: FileFilter): Steps<Candidates | null> {
  const { standing, trigger } = filter;
  const states = standing === undefined ? null : statesOf(standing);
  if (states?.runs.length === 0) return null;
  if (states === null && trigger === undefined && filter.targets === undefined) return null;
  const field = store.dialect.jsonField("json", "trigger");
  const bindings =
    trigger === undefined ? null : yield* ids(`SELECT id FROM bindings WHERE ${field} = ? ORDER BY id DESC`, [trigger]);
  const digests = filter.targets === undefined ? null : yield* knownDigests(filter.targets);
  return { states: states?.runs ?? ALL_RUN_STATES, bindings, digests, isAnyState: states === null };
}

interface Standing {
  readonly arrivals: readonly ArrivalState[];
  readonly runs: readonly RunState[];
}

function statesOf(standing: FileStanding): Standing {
  const all = Object.entries(ARRIVAL_STATES) as [ArrivalState, (typeof ARRIVAL_STATES)[ArrivalState]][];
  const runs = ALL_RUN_STATES.some((state) => RUN_STATES[state].standing === standing)
    ? runStatesThat((facts) => facts.standing === standing)
    : [];
  return { arrivals: all.filter(([, facts]) => facts.standing === standing).map(([state]) => state), runs };
}

/** Arrivals whose state leaves it to the run where the file stands. */
const BY_RUN = (Object.keys(ARRIVAL_STATES) as ArrivalState[]).filter(
  (state) => ARRIVAL_STATES[state].standing === null,
);

function conditionOf(
  { dialect }: Store,
  { text, drop, from, to, standing }: FileFilter,
  [first, last]: readonly [number, number],
): Condition {
  const parts: (readonly [where: string, ...values: (string | number)[]])[] = [
    ["arrivals.id >= ? AND arrivals.id <= ?", first, last],
    // Before all that needs the whole row.
    ...(text === undefined ? [] : [[dialect.isLike("arrivals.path"), likePattern(text)] as const]),
    // Seen and left again before anything was done with it.
    ["(arrivals.gone_at IS NULL OR arrivals.state <> 'settling')"],
    ...(drop === undefined ? [] : [["arrivals.drop_name = ?", drop] as const]),
    // Clocks may have been set back meanwhile.
    ...(from === undefined ? [] : [["arrivals.seen_at >= ?", from] as const]),
    ...(to === undefined ? [] : [["arrivals.seen_at < ?", to] as const]),
  ];
  if (standing !== undefined) {
    const { arrivals, runs } = statesOf(standing);
    parts.push([`arrivals.state IN (${literals(runs.length === 0 ? arrivals : BY_RUN)})`]);
  }
  return { where: parts.map(([where]) => where).join(" AND "), values: parts.flatMap(([, ...values]) => values) };
}

/** A part of the text, whatever wildcards it holds. */
function likePattern(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
}

function* searchArrivals(
  store: Store,
  filter: FileFilter,
  at: { readonly from: number; readonly to: number; readonly after: string | null } & Readonly<
    Record<"size" | "limit", number>
  >,
): Steps<PartFound> {
  const last = Math.min(at.to, at.after === null ? at.to : Number(at.after) - 1);
  const first = Math.max(at.from, last - at.size + 1);
  if (!(last >= first)) return { found: [], next: null };
  const { where, values } = conditionOf(store, filter, [first, last]);
  const { byRowId, indexedBy } = store.dialect;
  const by = filter.text === undefined ? byRowId : indexedBy("arrivals_path");
  const found = yield* ids(`SELECT id FROM arrivals ${by} WHERE ${where} ORDER BY id DESC LIMIT ?`, [
    ...values,
    at.limit,
  ]);
  const end = found.length === at.limit ? (found.at(-1) ?? first) : first;
  return { found, next: end <= at.from ? null : String(end) };
}

/** The first arrival that was seen at the instant or later: ids increase with the order of first sighting. */
function* seenAtOrAfter(instant: string, first: number, last: number): Steps<number> {
  let [low, high] = [first, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = yield* row<{ id: number; seen_at: string }>(
      "SELECT id, seen_at FROM arrivals WHERE id >= ? ORDER BY id LIMIT 1",
      middle,
    );
    if (found === undefined || found.seen_at >= instant) high = middle;
    else low = found.id + 1;
  }
  return low;
}

/** Of arrivals or of runs, in their order. */
function* listed(found: readonly (number | string)[]): Steps<readonly ListedFile[]> {
  const isByRun = typeof found[0] === "string";
  const runs = yield* rowEach<RunCells>(
    isByRun
      ? `${SELECT_RUN} WHERE runs.id = ?`
      : `${SELECT_RUN} WHERE runs.id = (SELECT run_id FROM arrivals WHERE arrivals.id = ?)`,
    [isByRun ? "text" : "bigint"],
    found.map((id) => [id]),
  );
  const arrivalIds = isByRun ? runs.map((cells) => cells?.[1] ?? 0) : (found as readonly number[]);
  const arrivals = yield* arrivalsById(arrivalIds);
  const byId = new Map<number, Arrival>(arrivals.map((arrival) => [arrival.id, arrival]));
  return arrivalIds.flatMap((id, at) => {
    const arrival = byId.get(id);
    const run = runs[at];
    return arrival === undefined ? [] : [{ arrival, run: run === undefined ? null : toRun(run) }];
  });
}

function* ids(sql: string, values: readonly Value[]): Steps<readonly number[]> {
  return (yield* rows<{ id: number }>(sql, ...values)).map(({ id }) => id);
}

// Files that indexes find at once, however many there are.

/** Files whose names begin with the text, letters as they are; none where there are very many. */
function* namedIds(text: string): Steps<readonly number[]> {
  const found = yield* rows<{ id: number }>(
    "SELECT id FROM arrivals WHERE name >= ? AND name < ? LIMIT ?",
    text,
    text + LAST_CHARACTER,
    NAMED_MAX + 1,
  );
  return found.length > NAMED_MAX ? [] : found.map(({ id }) => id);
}

function* unmatchedCount(drop: string, most: number): Steps<UnmatchedCount> {
  const counted = yield* row<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM arrivals WHERE ${UNMATCHED} LIMIT ?) AS listed`,
    drop,
    most,
  );
  const end = (order: string) =>
    `SELECT changed_at AS at FROM arrivals WHERE ${UNMATCHED} ORDER BY id ${order} LIMIT 1`;
  const oldest = yield* row<{ at: string }>(end("ASC"), drop);
  const newest = yield* row<{ at: string }>(end("DESC"), drop);
  return { count: Number(counted?.count ?? 0), oldest: oldest?.at ?? null, newest: newest?.at ?? null };
}

function* unmatched(drop: string, limit: number, before: number): Steps<readonly Arrival[]> {
  const found = yield* rows<ArrivalRow>(
    `SELECT * FROM arrivals WHERE ${UNMATCHED} AND id < ? ORDER BY id DESC LIMIT ?`,
    drop,
    before,
    limit,
  );
  return found.map(toArrival);
}

// Goes through runs of some states, of a trigger or with a target, newest first and in parts, for a condition on their
// files. Several indexes are read side by side; a part ends where the first of them ends.

interface Candidates {
  readonly states: readonly RunState[];
  /** Whether these are all states. */
  readonly isAnyState: boolean;
  /** Null: of any trigger. */
  readonly bindings: readonly number[] | null;
  /** Of targets; null: with any. */
  readonly digests: readonly bigint[] | null;
}

/** On `arrivals`. */
interface Condition {
  readonly where: string;
  readonly values: readonly Value[];
}

/** Where the candidates come from, in the order of their ids. */
interface Source {
  readonly from: string;
  /** On the candidates, as the index has them. */
  readonly where: string;
  readonly values: readonly Value[];
}

function* candidatesIn(
  store: Store,
  candidates: Candidates,
  condition: Condition,
  at: { readonly after: string | null; readonly size: number; readonly limit: number },
): Steps<{ readonly found: readonly string[]; readonly next: string | null }> {
  const found: string[] = [];
  /** Below it, some source was not read. */
  let readTo = "";
  for (const source of sourcesOf(store, candidates)) {
    const part = yield* partOf(source, candidates, condition, at);
    found.push(...part.found);
    if (part.readTo > readTo) readTo = part.readTo;
  }
  // A run may have several of the targets.
  const whole = [...new Set(found)].filter((id) => id >= readTo).sort((a, b) => (a < b ? 1 : -1));
  const taken = whole.slice(0, at.limit);
  const end = taken.length < whole.length ? (taken.at(-1) ?? readTo) : readTo;
  return { found: taken, next: end === "" ? null : end };
}

/** The digests of those of the targets that some run has. */
function* knownDigests(targets: readonly TargetKey[]): Steps<readonly bigint[]> {
  const digests = targets.map(digestOf);
  const found = yield* rowEach<readonly unknown[]>(
    "SELECT 1 FROM run_targets WHERE digest = ?",
    ["bigint"],
    digests.map((digest) => [digest]),
  );
  return digests.filter((_, at) => found[at] !== undefined);
}

function sourcesOf({ dialect }: Store, { states, bindings, digests }: Candidates): readonly Source[] {
  if (digests !== null)
    return digests.map((digest) => ({
      from: "run_targets JOIN runs ON runs.id = run_targets.run_id",
      where: "run_targets.digest = ?",
      values: [digest],
    }));
  const areUsual = states.some((state) => USUAL_STATES.includes(state));
  if (bindings !== null && areUsual && bindings.length <= BINDINGS_MAX)
    return bindings.map((id) => ({
      from: `runs ${dialect.indexedBy("runs_binding")}`,
      where: "runs.binding_id = ?",
      values: [id],
    }));
  return states.map((state) => ({
    from: `runs ${dialect.indexedBy(runIndexOf(state, {}).index)}`,
    where: `runs.state = ${literal(state)}`,
    values: [],
  }));
}

function* partOf(
  { from, where, values }: Source,
  { states, isAnyState, bindings }: Candidates,
  condition: Condition,
  { after, size, limit }: { readonly after: string | null; readonly size: number; readonly limit: number },
): Steps<{ readonly found: readonly string[]; readonly readTo: string }> {
  const below = after === null ? "" : " AND runs.id < ?";
  const inner = (columns: string) =>
    `SELECT ${columns} FROM ${from} WHERE ${where}${below} ORDER BY runs.id DESC LIMIT ?`;
  const given = [...values, ...(after === null ? [] : [after]), size];
  const end = yield* row<{ last: string | null; n: number }>(
    `SELECT min(id) AS last, count(*) AS n FROM (${inner("runs.id")}) AS part`,
    ...given,
  );
  if (end === undefined || end.n === 0) return { found: [], readTo: "" };
  const more = [
    ...(isAnyState ? [] : [` AND part.state IN (${literals(states)})`]),
    ...(bindings === null ? [] : [` AND part.binding_id IN (${bindings.length === 0 ? "NULL" : bindings.join(", ")})`]),
  ].join("");
  const found = yield* rows<{ id: string }>(
    `SELECT part.id FROM (${inner("runs.id, runs.arrival_id, runs.state, runs.binding_id")}) AS part
      JOIN arrivals ON arrivals.id = part.arrival_id AND arrivals.run_id = part.id
      WHERE ${condition.where}${more} ORDER BY part.id DESC LIMIT ?`,
    ...given,
    ...condition.values,
    limit,
  );
  const ids = found.map(({ id }) => id);
  if (ids.length === limit) return { found: ids, readTo: ids.at(-1) ?? "" };
  return { found: ids, readTo: end.n === size ? (end.last ?? "") : "" };
}
