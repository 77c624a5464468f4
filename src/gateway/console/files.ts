/** Files in the console: the search, the life of one file, and what is in it. */
import { basename } from "node:path/posix";
import { nameForms } from "#core/file-names.ts";
import { type SharedQuery, shareQuery } from "#core/shared-query.ts";
import { bodiesOf } from "#mapping/segment/payloads.ts";
import { identifierKind, SOURCE_IDENTIFIERS, type TargetTexts, targetWords } from "#wire/target.ts";
import type { GatewayConfig } from "../config.ts";
import type { FileFilter, ListedFile, TargetKey, TracedFile } from "../ledger/ledger.ts";
import type { Arrival, Batch, Run, TargetFacts } from "../model.ts";
import type { Action } from "../operations/api/attention.ts";
import type { AnswerOf, HandlersOf, QueryOf } from "../operations/api/endpoint.ts";
import type { FilePage, FileReadings, FileRow, fileEndpoints } from "../operations/api/files.ts";
import { batchStory, eventStory, type StoryEvent } from "../operations/batch-story.ts";
import { unknownSubject } from "../operations/problems.ts";
import { allActionsOf, currentPlace } from "../operations/run-actions.ts";
import { placedReadings } from "../spool/placed-readings.ts";
import { readFacts } from "../spool/target-index.ts";
import { CANCELLABLE_STATES, REPLAYABLE_STATES, RUN_STATES, standingOf } from "../states.ts";
import { type ContentParts, FileContent, mustFindFile, runWithInput } from "./file-content.ts";
import { formatOf, headOf, marksOf, previewOf } from "./input-preview.ts";
import { targetFields } from "./reading-origin.ts";

const TARGETS_MAX = 1_000;
/** Characters of a payload; a batch has a few megabytes at most. */
const PAYLOAD_MAX = 1_000_000;

/** Runs whose targets are read for their selectors, and selectors that are tried. */
const RUNS_MAX = 50;
const SELECTORS_MAX = 100;
const TARGETS_PER_RUN = 1_000;
/** Milliseconds; the selectors of a site hardly ever change. */
const KNOWN_MS = 60_000;

const NUMBERED: ReadonlySet<string> = new Set(["sourceId"]);

/** Runs of a file, entries, other versions and refused rows that are shown. */
const SHOWN_MAX = 200;

export function fileHandlers(config: GatewayConfig, parts: ContentParts): HandlersOf<typeof fileEndpoints> {
  const { ledger } = parts;
  const find = (id: number) => mustFindFile(id, parts);
  const meters = new Meters(parts);
  return {
    files: ({ query }) => findFiles(query, parts, meters),
    async file({ params: { id }, signal }) {
      const life = await ledger.files.life(id);
      if (life === null) throw await unknownFile(id, parts);
      return await pageOf(life, config, parts, signal);
    },
    async fileInput({ params, query, signal }) {
      const arrival = await find(params.id);
      const run = await ledger.runOf(arrival.id);
      const rejected = run === null ? [] : await ledger.rejectedRows(run.id);
      const { encoding } = run?.binding.settings ?? {};
      await using content = await FileContent.open(arrival, parts, signal);
      const asked = { encoding: typeof encoding === "string" ? encoding : undefined, ...query };
      return await previewOf(content, basename(arrival.path), asked, run === null ? [] : marksOf(run, rejected));
    },
    async fileInputFile({ params, signal }) {
      const arrival = await find(params.id);
      const content = await FileContent.open(arrival, parts, signal);
      return { name: basename(arrival.path), content: bytesOf(content, await content.stream()) };
    },
    fileReadings: async ({ params, query }) => readingsOf(await find(params.id), query, parts),
    filePayload: async ({ params, query }) => payloadOf(await find(params.id), query, parts),
  };
}

async function* bytesOf(content: FileContent, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  await using _ = content;
  yield* stream;
}

function unknownFile(id: number, parts: ContentParts): Promise<Error> {
  return mustFindFile(id, parts).then(
    () =>
      unknownSubject({ operation: "find file", subject: String(id), message: "the file was forgotten a moment ago" }),
    (thrown: Error) => thrown,
  );
}

// ── search

async function findFiles(
  query: QueryOf<(typeof fileEndpoints)["files"]>,
  { ledger }: Pick<ContentParts, "ledger">,
  meters: Meters,
): Promise<AnswerOf<(typeof fileEndpoints)["files"]>> {
  const { q, state, ...given } = query;
  const filter = { ...given, standing: state };
  const text = q?.trim() ?? "";
  const list = async (wanted: FileFilter, mark = "") => {
    const { files, next, searchedTo } = await ledger.files.list(wanted);
    return { files: files.map(rowOf), next: next === null ? null : `${mark}${next}`, searchedTo };
  };
  if (text === "") return await list(filter);
  const ofMeter = async (after?: string) => list({ ...filter, targets: await meters.targets(text), after }, OF_METER);
  if (filter.after?.startsWith(OF_METER) === true) return await ofMeter(filter.after.slice(OF_METER.length));
  if (filter.after === undefined) {
    const identified = await ledger.files.identified(text, filter.limit);
    if (identified.length > 0) return { files: identified.map(rowOf), next: null, searchedTo: null };
  }
  const found = await list({ ...filter, ...textFilter(text) });
  if (found.files.length > 0 || filter.after !== undefined) return found;
  const byMeter = await ofMeter();
  return byMeter.files.length > 0 ? byMeter : found;
}

/** The beginning of `next` in the list of the files of a meter. */
const OF_METER = "meter ";

/** A target as `sourceSerialNumber=M-1 mappingConfig=kWh`, or a part of the path. */
function textFilter(text: string): Pick<FileFilter, "text" | "targets"> {
  const fields = targetFields(text);
  const kind = fields === null ? null : identifierKind(fields);
  return fields === null || kind === null ? { text } : { targets: [{ kind, target: targetWords(fields) }] };
}

function rowOf({ arrival, run }: ListedFile): FileRow {
  const { id, drop, path, size, seenAt, changedAt, state, reason } = arrival;
  const isOfRun = run !== null && state === "matched";
  return {
    ...{ id, drop, path, name: basename(path), size, seenAt },
    changedAt: run !== null && run.changedAt > changedAt ? run.changedAt : changedAt,
    state: standingOf(state, run?.state ?? null),
    run: run?.id ?? null,
    runState: run?.state ?? null,
    trigger: run?.binding.trigger ?? null,
    points: run?.points ?? null,
    reason: isOfRun ? (run.reason?.message ?? null) : reason,
  };
}

// ── one file

async function pageOf(
  { arrival, runs, events }: TracedFile,
  config: GatewayConfig,
  parts: ContentParts,
  signal: AbortSignal,
): Promise<FilePage> {
  const { ledger } = parts;
  const latest = runs.at(-1)?.run ?? null;
  const [versions, entries] = await Promise.all([
    ledger.files.versions(arrival, SHOWN_MAX),
    latest?.binding.unpack === undefined ? { files: [], total: 0 } : ledger.files.entries(arrival.id, SHOWN_MAX),
  ]);
  const { state, reason, mtime, sha256, goneAt, parentId } = arrival;
  return {
    arrival: {
      ...rowOf({ arrival, run: latest }),
      ...{ arrivalState: state, arrivalReason: reason, mtime, sha256, goneAt, container: parentId },
    },
    runs: runs.slice(-SHOWN_MAX).map(({ run, batches, rejected }) => ({
      run: shownRun(run),
      story: shownStory(batches),
      batches: batches.map((batch) => ({ ...batch, outcome: batch.outcome && shownOutcome(batch.outcome) })),
      rejected: rejected.slice(0, SHOWN_MAX),
      rejectedCount: rejected.length,
    })),
    events: timelineOf(eventStory(events, runs)),
    versions: versions.files.map(rowOf),
    entries: entries.files.map(rowOf),
    counts: { runs: runs.length, versions: versions.total, entries: entries.total },
    forms: nameForms(arrival.path),
    currentPlace: currentPlace(arrival, events),
    input: await inputFacts({ arrival }, parts, signal),
    actions: latest === null ? unclaimedActions(goneAt) : [...actionsFor(latest, config)],
  };
}

type ShownRun = FilePage["runs"][number]["run"];

/** Without what no page shows, such as the limits of containers. */
function shownRun(run: Run): ShownRun {
  const { confirmClock: _clock, finishPlan: _plan, binding, reason, replay, findings, ...facts } = run;
  const { trigger, service, mapper, settings, rows } = binding;
  return {
    ...facts,
    findings: [...findings],
    binding: { trigger, service, mapper, settings: { ...settings }, rows },
    reason:
      reason === null
        ? null
        : {
            ...reason,
            rejectedByReason: reason.rejectedByReason && [...reason.rejectedByReason],
            targets: reason.targets && [...reason.targets],
          },
    replay: replay && {
      ...{ of: replay.of, rejectedOnly: replay.rejectedOnly, overwrite: replay.overwrite },
      ...{ by: replay.by, why: replay.why ?? null, continues: replay.continues !== undefined },
    },
  };
}

type Outcome = NonNullable<TracedFile["runs"][number]["batches"][number]["outcome"]>;

function shownOutcome({ by, received, stored, discarded, at }: Outcome) {
  return { by, received, stored, discarded: [...discarded], at };
}

function shownStory(batches: readonly Batch[]): FilePage["runs"][number]["story"] {
  const { shown, folded } = batchStory(batches);
  return { shown: shown.map(({ sequence }) => sequence), ...folded };
}

function timelineOf(events: readonly StoryEvent[]): FilePage["events"] {
  return events.map(({ at, what, detail, operationId, runId, folded = null }, index) => {
    const before = events[index - 1];
    return {
      ...{ at, what, detail, operationId, runId, folded },
      sinceMs: before === undefined ? null : Math.max(0, Date.parse(at) - Date.parse(before.at)),
    };
  });
}

async function inputFacts(
  { arrival }: Pick<TracedFile, "arrival">,
  parts: ContentParts,
  signal: AbortSignal,
): Promise<FilePage["input"]> {
  if ((await runWithInput(arrival.id, parts)) === null) {
    const isThere = arrival.goneAt === null && arrival.parentId === null;
    return { kept: false, where: isThere ? "drop" : null, format: null };
  }
  await using content = await FileContent.open(arrival, parts, signal);
  return { kept: true, where: "spool", format: formatOf(await headOf(content), basename(arrival.path)) };
}

function unclaimedActions(goneAt: string | null): Action[] {
  return goneAt === null ? ["forget"] : [];
}

/** For any file, also one that needs nothing. */
function actionsFor(run: Run, { triggers }: GatewayConfig): readonly Action[] {
  const { state, binding } = run;
  if (RUN_STATES[state].needsAttention)
    return allActionsOf(
      run,
      triggers.some(({ name, provision }) => name === binding.trigger && provision !== undefined),
    );
  if (REPLAYABLE_STATES.includes(state)) return ["replay", "forget"];
  return CANCELLABLE_STATES.includes(state) ? ["cancel"] : [];
}

// Finds the targets that a person may mean by the number or the name of a meter alone.

type Selector = Pick<TargetTexts, "mappingConfig" | "variableTypeId">;

/** A target names its source and a selector, such as a register: those of the newest runs are tried with the meter. */
class Meters {
  readonly #selectors: SharedQuery<readonly Selector[]>;

  constructor(parts: Pick<ContentParts, "ledger" | "spool">) {
    this.#selectors = shareQuery(() => recentSelectors(parts));
  }

  async targets(meter: string): Promise<readonly TargetKey[]> {
    const number = /^\d{1,15}$/.test(meter) ? Number(meter) : null;
    const keys: TargetKey[] =
      number === null ? [] : [{ kind: "variableId", target: targetWords({ variableId: number }) }];
    for (const selector of await this.#selectors.within(KNOWN_MS))
      for (const kind of SOURCE_IDENTIFIERS) {
        if (NUMBERED.has(kind) && number === null) continue;
        keys.push({ kind, target: targetWords({ [kind]: NUMBERED.has(kind) ? (number ?? 0) : meter, ...selector }) });
      }
    return keys;
  }
}

async function recentSelectors({
  ledger,
  spool,
}: Pick<ContentParts, "ledger" | "spool">): Promise<readonly Selector[]> {
  const found = new Map<string, Selector>();
  for (const { id } of await ledger.recentRuns(RUNS_MAX)) {
    const { about } = spool.filesOf(id);
    if (about === null) continue;
    await readFacts(about, TARGETS_PER_RUN, async (part) => {
      for (const { target } of part) {
        const { mappingConfig, variableTypeId } = target;
        const selector = mappingConfig === undefined ? { variableTypeId } : { mappingConfig };
        if (found.size < SELECTORS_MAX) found.set(JSON.stringify(selector), selector);
      }
    });
  }
  found.delete("{}");
  return [...found.values()];
}

// The result of a mapper, from the segment that the spool keeps: readings with their rows, and batches.

type Endpoints = typeof fileEndpoints;

async function readingsOf(
  arrival: Arrival,
  { run: asked, target, limit }: QueryOf<Endpoints["fileReadings"]>,
  parts: ContentParts,
): Promise<FileReadings> {
  const run = await findRun(arrival, asked, parts);
  const files = parts.spool.filesOf(run.id);
  if (files.segment === null || files.rows === null) throw notKept(run);
  const targets: TargetFacts[] = [];
  if (files.about !== null)
    await readFacts(files.about, TARGETS_MAX, async (part) => {
      if (targets.length < TARGETS_MAX) targets.push(...part);
    });
  const readings: FileReadings["readings"] = [];
  let isCut = false;
  for await (const { element, reading, row, sheet } of placedReadings(files)) {
    const words = targetWords(element);
    if (target !== undefined && words !== target) continue;
    isCut = readings.length === limit;
    if (isCut) break;
    const version = reading.version ?? element.version ?? null;
    readings.push({ target: words, date: reading.date, value: reading.value, version, sheet, row });
  }
  return { run: run.id, targets: targets.slice(0, TARGETS_MAX).map(shownTarget), readings, isCut };
}

function shownTarget({ target, points, fromMs, toMs, unit }: TargetFacts): FileReadings["targets"][number] {
  const instant = (ms: number) => (points === 0 ? null : Temporal.Instant.fromEpochMilliseconds(ms).toString());
  return { target: targetWords(target), points, from: instant(fromMs), to: instant(toMs), unit: unit ?? null };
}

async function payloadOf(
  arrival: Arrival,
  { run: asked, batch: name }: QueryOf<Endpoints["filePayload"]>,
  parts: ContentParts,
): Promise<AnswerOf<Endpoints["filePayload"]>> {
  const run = await findRun(arrival, asked, parts);
  const batches = await parts.ledger.batches(run.id);
  const batch = batches.find(({ sequence, operationId }) => sequence === name || operationId === name);
  if (batch === undefined)
    throw unknownSubject({
      operation: "show payload",
      subject: name,
      message: `run ${run.id} has no batch ${name}; it has ${batches.length}`,
    });
  const segment = await parts.spool.openSegment(run.id);
  if (segment === null) throw notKept(run);
  for await (const { body } of bodiesOf(segment, [batch])) {
    const text = body.toString("utf8");
    return {
      ...{ run: run.id, operationId: batch.operationId, sequence: batch.sequence, bytes: body.length },
      ...{ text: text.slice(0, PAYLOAD_MAX), isCut: text.length > PAYLOAD_MAX },
    };
  }
  throw notKept(run);
}

/** The named run, or the latest that the spool has readings of. */
async function findRun(arrival: Arrival, asked: string | undefined, parts: ContentParts): Promise<Run> {
  const { ledger, spool } = parts;
  const runs = ((await ledger.files.life(arrival.id))?.runs ?? []).map(({ run }) => run);
  if (asked !== undefined) {
    const named = runs.find(({ id }) => id === asked);
    if (named !== undefined) return named;
    throw unknownSubject({
      operation: "find run",
      subject: asked,
      message: `${arrival.path} has no run ${asked}`,
    });
  }
  const found = runs.findLast(({ id }) => spool.filesOf(id).segment !== null) ?? runs.at(-1);
  if (found !== undefined) return found;
  throw unknownSubject({
    operation: "find run",
    subject: arrival.path,
    message: "no trigger has claimed the file, so that it has no readings",
    hint: "`headgate trigger test NAME` and the page of triggers say which rules do not hold.",
  });
}

function notKept(run: Run): Error {
  return unknownSubject({
    operation: "show readings",
    subject: run.id,
    message:
      run.points.mapped === 0
        ? `run ${run.id} of ${run.path} has no readings: it is ${run.state}`
        : `the readings of run ${run.id} are no longer kept`,
    hint: "`spool.keepInputs` says how long inputs and readings are kept. A replay maps the file again.",
  });
}
