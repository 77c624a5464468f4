/** The playground: a mapper tried on a file, in the same processes and with the same limits as in a run. */
import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import { extname, join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { stringify } from "yaml";
import type { z } from "zod";
import { type Clock, isoInstant } from "#core/clock.ts";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";
import { runIdTimeMs } from "#core/run-id.ts";
import { type SharedQuery, shareQuery } from "#core/shared-query.ts";
import type { FairQueue } from "#core/turns.ts";
import { listCases } from "#mapping/authoring/case-files.ts";
import { CASE_LIMITS, caseOutcome } from "#mapping/authoring/cases.ts";
import { addCase } from "#mapping/authoring/new-case.ts";
import { sketchFile } from "#mapping/authoring/sketch/sketch.ts";
import {
  byAttention,
  type CatalogueEntry,
  conflictWords,
  findingWords,
  lookupFile,
  type MapperCatalogue,
  type MapResult,
} from "#mapping/contract.ts";
import { isBundled } from "#mapping/workers/bundled.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { type DryRunFiles, type DryRuns, openDryRuns } from "#mapping/workers/dry-run.ts";
import { createInspector } from "#mapping/workers/inspector.ts";
import { targetWords } from "#wire/target.ts";
import { ianaZone } from "#wire/zones.ts";
import type { Closer } from "../closers.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger, MapperRuns } from "../ledger/ledger.ts";
import type { MapperIdentity, Place, Reason } from "../model.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import {
  type CaseRequest,
  type Mapped,
  type MapperFacts,
  type MapRequest,
  PAYLOAD_MAX,
  type playgroundEndpoints,
  READINGS_MAX,
  REFUSED_MAX,
  TARGETS_MAX,
} from "../operations/api/playground.ts";
import { unknownSubject } from "../operations/problems.ts";
import { batchLimits } from "../runs.ts";
import { spoolPlaces } from "../spool/paths.ts";
import { placedReadings } from "../spool/placed-readings.ts";
import { segmentFiles } from "../spool/segment-files.ts";
import { MAPPED_AT_ONCE, MAPPING_LIMIT_MS, NewestRequests } from "./actions.ts";
import { type ContentParts, FileContent, mustFindFile } from "./file-content.ts";
import { previewOf } from "./input-preview.ts";

export interface PlaygroundParts extends ContentParts {
  readonly ledger: ContentParts["ledger"] & Pick<Ledger, "mapperRuns">;
  readonly clock: Clock;
  readonly closers: Closer[];
  /** Turns of files that are mapped for people, by previews too. */
  readonly mapping: FairQueue<string>;
}

const NOTHING = {
  points: 0,
  superseded: 0,
  period: null,
  targetCount: 0,
  targets: [],
  readings: [],
  isCut: false,
  payload: null,
  isPayloadCut: false,
} as const;

/** The oldest of more is removed. */
const SAMPLES_MAX = 20;
const KEPT_MS = 60 * 60_000;

export function openPlayground(config: GatewayConfig, parts: PlaygroundParts): HandlersOf<typeof playgroundEndpoints> {
  const playground = new Playground(config, parts);
  parts.closers.push(() => playground.close());
  return playground.handlers();
}

/** The counts of runs read an index of all of them. */
const RUNS_FRESH_MS = 30_000;
/** Lines of the log in an answer. */
const LOG_MAX = 200;
/** Bytes of a file at a drop; larger ones take too long to copy and to map while a person waits. */
const FILE_BYTES_MAX = 100_000_000;
const SKETCH_ROWS = 20;
const NO_TABLE = "Take a file with a row for each date, or choose a mapper and write its settings.";

type MapperRunFacts = z.output<typeof playgroundEndpoints.mapperRuns.answer>[number];
type Source = Pick<MapRequest, "sample" | "file">;

class Playground {
  /** In force; read at each request. */
  readonly #config: GatewayConfig;
  readonly #parts: PlaygroundParts;
  readonly #samples: Samples;
  readonly #inspector = createInspector();
  readonly #catalogue: MapperCatalogue;
  #dryRuns: Promise<DryRuns> | null = null;
  readonly #mapperRuns: SharedQuery<MapperRunFacts[]>;
  readonly #newest = new NewestRequests("map file");

  constructor(config: GatewayConfig, parts: PlaygroundParts) {
    this.#config = config;
    this.#parts = parts;
    this.#samples = new Samples(spoolPlaces(config.spool.path).samples, parts.clock);
    this.#mapperRuns = shareQuery(async () => (await parts.ledger.mapperRuns()).map(runFacts));
    this.#catalogue = createCatalogue(config.mappers.folders, this.#inspector);
  }

  handlers(): HandlersOf<typeof playgroundEndpoints> {
    return {
      mappers: () => this.#mappers(),
      mapperRuns: () => this.#mapperRuns.within(RUNS_FRESH_MS),
      addSample: async ({ query, body }) => {
        const { id, bytes } = await this.#samples.add(query.name, body);
        return { sample: id, name: query.name, bytes };
      },
      sampleInput: async ({ params, query, signal }) => {
        const { path, name } = await this.#source(params, signal);
        const content = { path: async () => path, stream: async () => createReadStream(path) };
        return await previewOf(content, name, query, []);
      },
      map: ({ body, person, signal }) => this.#newest.run(person.name, signal, (stop) => this.#map(body, stop)),
      propose: async ({ body, signal }) => this.#propose(await this.#source(body, signal), body),
      addCase: ({ body, signal }) => this.#addCase(body, signal),
    };
  }

  async close(): Promise<void> {
    this.#newest.close();
    const dryRuns = await this.#dryRuns?.catch(() => null); // One that never opened has nothing to close.
    await dryRuns?.close();
    await Promise.all([this.#samples.close(), this.#catalogue.close()]);
  }

  async #mappers(): Promise<MapperFacts[]> {
    const facts: MapperFacts[] = [];
    for (const { identity, summary, modulePath, settingsSchema } of await this.#catalogue.list()) {
      const { name, version, digest } = identity;
      const cases = await listCases(modulePath);
      facts.push({ name, version, digest, summary, settings: settingsSchema, isBundled: isBundled(modulePath), cases });
    }
    return facts;
  }

  async #mapper(name: string): Promise<CatalogueEntry> {
    const found = await this.#catalogue.find(name);
    if (found !== null) return found;
    throw new ConfigError("HG-MAP-001", { operation: "find mapper", subject: name });
  }

  async #map(request: MapRequest, signal: AbortSignal): Promise<Mapped> {
    const config = this.#config;
    const { identity, checkSettings } = await this.#mapper(request.mapper);
    const { settings, rows, rejectShare } = request;
    const sample = await this.#source(request, signal);
    const fileName = request.fileName ?? sample.name;
    const log: string[] = [];
    const beganMs = performance.now();
    const facts = () => ({
      mapper: identity,
      durationMs: Math.round(performance.now() - beganMs),
      log,
      trigger: triggerYaml(request, fileName),
    });
    const fault = await checkSettings(settings);
    if (fault !== null) return unmappedAnswer({ code: "HG-MAP-004", message: fault, hint: null, place: null }, facts());
    const job = {
      inputPath: sample.path,
      fileName: posix.basename(fileName),
      filePath: request.fileName ?? sample.filePath,
      binding: { mapper: identity, settings, rows, rejectShare, limits: batchLimits(config) },
      lookups: config.lookups.map(lookupFile),
    };
    const note = (message: string) => {
      if (log.length < LOG_MAX) log.push(message);
    };
    return await this.#mapFile({ job, note }, signal, (result, files) => mappedAnswer(result, files, facts()));
  }

  /** The mapper runs in processes of its own, as always: for its result, and then for the case as it was written. */
  async #addCase(given: CaseRequest, signal: AbortSignal): Promise<{ case: string; file: string }> {
    const { identity, modulePath } = await this.#mapper(given.mapper);
    if (isBundled(modulePath)) throw ownOnly(given.mapper);
    const { path, name: sampleName } = await this.#source(given, signal);
    const { mapper, name, settings, rows } = given;
    const wanted = { mapper, name, settings, rows, fileName: given.fileName ?? sampleName };
    const { fileName } = wanted;
    const binding = { mapper: identity, settings, rows, limits: CASE_LIMITS };
    const job = { inputPath: path, fileName, filePath: fileName, binding };
    return await this.#mapFile({ job, note: () => undefined }, signal, async (result, { bodies }) => {
      const outcome = caseOutcome(result, await Array.fromAsync(bodies()));
      const module = { modulePath, digest: identity.digest };
      return addCase(modulePath, wanted, path, outcome, () => this.#inspector.caseFault(module, modulePath, name));
    });
  }

  readonly #mapFile: DryRuns["map"] = (run, signal, show) =>
    this.#parts.mapping.run("", async () => (await this.#runs()).map(run, signal, show), signal);

  #runs(): Promise<DryRuns> {
    const { workers, mappers } = this.#config;
    this.#dryRuns ??= openDryRuns(
      { workers: { ...workers, timeLimit: Math.min(workers.timeLimit, MAPPING_LIMIT_MS) }, folders: mappers.folders },
      MAPPED_AT_ONCE,
    );
    const opened = this.#dryRuns;
    // A full disk may have space again at the next request.
    opened.catch(() => {
      if (this.#dryRuns === opened) this.#dryRuns = null;
    });
    return opened;
  }

  async #propose(
    { path, name: subject }: Sample,
    { name, timeZone }: { readonly name: string; readonly timeZone?: string | undefined },
  ) {
    if (timeZone !== undefined && ianaZone(timeZone) === undefined)
      throw new ConfigError("HG-CLI-001", {
        operation: "propose mapper",
        subject: "timeZone",
        message: `${timeZone} is neither an IANA nor a Windows time zone`,
        hint: "Name the zone that the file is written in, such as Europe/Brussels.",
      });
    const { table, proposal } = await sketchFile(name, { path, subject, hint: NO_TABLE }, async () => timeZone);
    const { columns } = table;
    const rows = table.rows.slice(0, SKETCH_ROWS).map((row) => [...row]);
    if (proposal === null)
      return {
        needsZone: true,
        columns: [...columns],
        rows,
        declarative: null,
        source: null,
        settings: {},
        assumed: [],
      };
    const { declarative, source, settings, assumed } = proposal;
    return { needsZone: false, columns: [...columns], rows, declarative, source, settings, assumed: [...assumed] };
  }

  async #source({ sample, file }: Source, signal: AbortSignal): Promise<Sample> {
    if (file !== undefined) return await this.#inputOf(file, signal);
    const found = sample === undefined ? null : await this.#samples.find(sample);
    if (found !== null) return found;
    throw unknownSubject({
      operation: "read sample",
      subject: sample ?? "",
      message: "there is no such sample, or it has expired",
      hint: "Send the file once more.",
    });
  }

  /** A copy of the file as it came, for all requests about it. */
  async #inputOf(id: number, signal: AbortSignal): Promise<Sample> {
    const arrival = await mustFindFile(id, this.#parts);
    if (arrival.size > FILE_BYTES_MAX)
      throw unknownSubject({
        operation: "read file",
        subject: arrival.path,
        message: `the file has ${arrival.size} bytes, and the playground takes at most ${FILE_BYTES_MAX}`,
        hint: "Try the mapper with `headgate map FILE --mapper NAME`, or with a part of the file.",
      });
    const names = { name: posix.basename(arrival.path), filePath: arrival.path };
    return await this.#samples.hold(`file ${id}`, names, async (path) => {
      await using content = await FileContent.open(arrival, this.#parts, signal);
      await pipeline(await content.stream(), createWriteStream(path));
    });
  }
}

function runFacts({ mapper, runs, quarantined, first, last }: MapperRuns): MapperRunFacts {
  const at = (id: string) => isoInstant(Temporal.Instant.fromEpochMilliseconds(runIdTimeMs(id)));
  return { ...mapper, runs, quarantined, first: at(first), last: at(last) };
}

function ownOnly(mapper: string): RejectedError {
  return new RejectedError("HG-OPS-011", {
    operation: "add case",
    subject: mapper,
    message: `the mapper ${mapper} comes with Headgate, and its cases with it`,
    hint: "Copy it into a folder of `mappers.folders` under another name, and add the case there.",
  });
}

// The text of a trigger for the configuration, as the playground proposes it.

/** The trigger for files that end like this one; a person narrows its pattern. */
function triggerYaml({ mapper, settings, rows, rejectShare }: MapRequest, fileName: string): string {
  const ending = extname(fileName);
  return stringify([
    {
      name: mapper,
      mapper,
      ...(rows === "lenient" ? { rows, rejectShare } : {}),
      fileNamePatternMatches: [
        ending === ""
          ? { filterType: "Equals", value: posix.basename(fileName) }
          : { filterType: "EndsWith", value: ending },
      ],
      ...(Object.keys(settings).length === 0 ? {} : { metadata: settings }),
    },
  ]);
}

// Files that people try mappers with, in a folder of the spool until they expire, or the gateway stops or starts.

interface Sample {
  /** Of the local copy; it ends like the name, since workbooks are known by that. */
  readonly path: string;
  readonly name: string;
  /** At its drop, or the name. */
  readonly filePath: string;
  readonly bytes: number;
}

interface Kept {
  readonly sample: Promise<Sample>;
  readonly atMs: number;
}

class Samples {
  readonly #clock: Clock;
  readonly #folder: string;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();

  /** `folder`: of the spool, which removes at its start what a crash left there. */
  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Returns its id. */
  async add(
    name: string,
    content: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly id: string; readonly bytes: number }> {
    const id = randomUUID();
    const { bytes } = await this.hold(id, { name, filePath: name }, (path) =>
      pipeline(content, createWriteStream(path)),
    );
    return { id, bytes };
  }

  /** Null when it is unknown, or was removed. */
  async find(id: string): Promise<Sample | null> {
    await this.#removeOld();
    return (await this.#kept.get(id)?.sample) ?? null;
  }

  /** The sample of this id, which `fill` writes when there is none yet. Throws the error of `fill`. */
  async hold(
    id: string,
    names: Pick<Sample, "name" | "filePath">,
    fill: (path: string) => Promise<void>,
  ): Promise<Sample> {
    await this.#removeOld();
    const known = this.#kept.get(id);
    if (known !== undefined) return await known.sample;
    const sample = this.#fill(names, fill);
    this.#kept.set(id, { sample, atMs: this.#now() });
    try {
      return await sample;
    } catch (thrown) {
      this.#kept.delete(id);
      throw thrown;
    }
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    this.#kept.clear();
  }

  async #fill(names: Pick<Sample, "name" | "filePath">, fill: (path: string) => Promise<void>): Promise<Sample> {
    await mkdir(this.#folder, { recursive: true, mode: PRIVATE_FOLDER });
    const ending = /^\.\w{1,8}$/.exec(extname(names.name))?.[0] ?? "";
    const path = join(this.#folder, `${randomUUID()}${ending}`);
    try {
      await fill(path);
      return { ...names, path, bytes: (await stat(path)).size };
    } catch (thrown) {
      await rm(path, { force: true });
      throw thrown;
    }
  }

  async #removeOld(): Promise<void> {
    const before = this.#now() - KEPT_MS;
    for (const [id, { sample, atMs }] of this.#kept) {
      if (atMs >= before && this.#kept.size < SAMPLES_MAX) return;
      this.#kept.delete(id);
      const path = await sample.then((one) => one.path).catch(() => null);
      if (path !== null) await rm(path, { force: true });
    }
  }

  #now(): number {
    return this.#clock.now().epochMilliseconds;
  }
}

// The answer of the playground, from the result of a dry run and its segment.

type Problem = Mapped["problems"][number];

interface DryRunFacts {
  readonly mapper: MapperIdentity;
  readonly durationMs: number;
  readonly log: readonly string[];
  /** YAML. */
  readonly trigger: string;
}

/** For settings that the mapper refuses: the file was not read. */
function unmappedAnswer(problem: Problem, facts: DryRunFacts): Mapped {
  return {
    status: "failed",
    ...shownFacts(facts),
    ...NOTHING,
    targets: [],
    readings: [],
    refused: [],
    refusedCount: 0,
    refusedByReason: [],
    problems: [problem],
  };
}

async function mappedAnswer(result: MapResult, files: DryRunFiles, facts: DryRunFacts): Promise<Mapped> {
  const refused = {
    refused: result.rejected.slice(0, REFUSED_MAX).map(({ message, place }) => ({ message, place: shownPlace(place) })),
    refusedCount: result.rejectedCount,
    refusedByReason: (result.rejectedByReason ?? []).map(({ message, column, count }) => ({
      message,
      count,
      ...(column === undefined ? {} : { column }),
    })),
  };
  if (result.status === "failed")
    return {
      ...unmappedAnswer(problemOf(result.reason), facts),
      ...refused,
      problems: [problemOf(result.reason), ...findingsOf(result)],
    };
  const { points, superseded, period, targets } = result;
  return {
    status: "mapped",
    ...shownFacts(facts),
    ...{ points, superseded, period },
    targetCount: targets.length,
    targets: targets.slice(0, TARGETS_MAX).map((one) => ({
      target: one.target,
      points: one.points,
      unit: one.unit ?? null,
      from: one.points === 0 ? null : instant(one.facts.fromMs),
      to: one.points === 0 ? null : instant(one.facts.toMs),
    })),
    ...(await readingsIn(files)),
    ...(await payloadIn(files)),
    ...refused,
    problems: [
      ...findingsOf(result),
      ...(result.conflicts?.shown.map((one) => remark(conflictWords(one))) ?? []),
      ...(points === 0 ? [remark("the file holds no readings: its run would be empty")] : []),
    ],
  };
}

function shownFacts({ mapper: { name, version, digest }, durationMs, log, trigger }: DryRunFacts) {
  return { mapper: { name, version, digest }, durationMs, log: [...log], trigger };
}

async function readingsIn({ segmentPath }: DryRunFiles): Promise<Pick<Mapped, "readings" | "isCut">> {
  const readings: Mapped["readings"] = [];
  for await (const { element, reading, row, sheet } of placedReadings(segmentFiles(segmentPath))) {
    if (readings.length === READINGS_MAX) return { readings, isCut: true };
    const version = reading.version ?? element.version ?? null;
    readings.push({ target: targetWords(element), date: reading.date, value: reading.value, version, row, sheet });
  }
  return { readings, isCut: false };
}

async function payloadIn({ bodies }: DryRunFiles): Promise<Pick<Mapped, "payload" | "isPayloadCut">> {
  for await (const body of bodies()) {
    const text = body.toString("utf8");
    return { payload: text.slice(0, PAYLOAD_MAX), isPayloadCut: text.length > PAYLOAD_MAX };
  }
  return { payload: null, isPayloadCut: false };
}

function problemOf({ code, message, hint, place }: Reason): Problem {
  return { code, message, hint: hint ?? null, place: place === undefined ? null : shownPlace(place) };
}

function findingsOf({ findings }: MapResult): Problem[] {
  return byAttention(findings).map((one) => remark(findingWords(one)));
}

function remark(message: string): Problem {
  return { code: null, message, hint: null, place: null };
}

function shownPlace({ sheet, row, column, text }: Place): Mapped["refused"][number]["place"] {
  return {
    ...(sheet === undefined ? {} : { sheet }),
    ...(row === undefined ? {} : { row }),
    ...(column === undefined ? {} : { column }),
    ...(text === undefined ? {} : { text }),
  };
}

function instant(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}
