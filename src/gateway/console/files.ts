/** Files in the console: the search, the life of one file, and what is in it. */
import { basename } from "node:path/posix";
import { nameForms } from "#core/file-names.ts";
import { identifierKind, targetWords } from "#wire/target.ts";
import type { GatewayConfig } from "../config.ts";
import type { FileFilter, ListedFile, TracedFile } from "../ledger/ledger.ts";
import type { Batch, Run } from "../model.ts";
import type { Action } from "../operations/api/attention.ts";
import type { AnswerOf, HandlersOf, QueryOf } from "../operations/api/endpoint.ts";
import type { FilePage, FileRow, fileEndpoints } from "../operations/api/files.ts";
import { batchStory, eventStory, type StoryEvent } from "../operations/batch-story.ts";
import { unknownSubject } from "../operations/problems.ts";
import { allActionsOf, currentPlace } from "../operations/run-actions.ts";
import { CANCELLABLE_STATES, REPLAYABLE_STATES, RUN_STATES, standingOf } from "../states.ts";
import { type ContentParts, FileContent, mustFindFile, runWithInput } from "./file-content.ts";
import { payloadOf, readingsOf } from "./file-readings.ts";
import { formatOf, headOf, marksOf, previewOf } from "./input-preview.ts";
import { Meters } from "./meters.ts";
import { targetFields } from "./reading-origin.ts";

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
