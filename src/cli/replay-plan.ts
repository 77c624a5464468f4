/** Compares the payload of a replay with the readings that were sent before, and with those of later runs. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { basename } from "node:path/posix";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { MappedFile } from "../mapping/contract.ts";
import type { Binding, MapperIdentity, PushElement, Run } from "../model.ts";
import { openLookupStore } from "../runs/lookups.ts";
import { assertMapped, type ReplayOverrides, replayBinding } from "../runs/replay-mapper.ts";
import { attemptsBefore, collectAccepted, laterRunsOf } from "../runs/steps/exclusions.ts";
import { bodiesOf, type PayloadReading, parseBody, ReadingSet, readingOf, targetOf } from "../segment/payloads.ts";
import { openKept } from "../spool/kept-files.ts";
import { openSpool, type Spool } from "../spool/spool.ts";
import { systemClock } from "../support/clock.ts";
import { digestOfFile } from "../support/digest.ts";
import { ConfigError, RejectedError } from "../support/errors.ts";
import { silentLog } from "../support/log.ts";
import { placeWords } from "../support/place-words.ts";
import { onlyOne } from "../support/settled.ts";
import { openMapping } from "../workers/open.ts";
import { bindingParts } from "./command-client.ts";
import { foundWords } from "./output.ts";

export interface ReplayWish extends ReplayOverrides {
  readonly rejectedOnly: boolean;
  readonly overwrite: boolean;
}

export interface ReplayPlan {
  readonly run: string;
  readonly drop: string;
  readonly file: string;
  readonly trigger: string;
  readonly mapper: MapperIdentity;
  readonly readings: {
    readonly mapped: number;
    readonly sent: number;
    /** Of the sent readings: not accepted before, accepted with another value, and with the same one. */
    readonly added: number;
    readonly changed: number;
    readonly unchanged: number;
    /** Left out, since they were accepted before. */
    readonly acceptedBefore: number;
    /** Accepted before, and not in the new payload; they stay at the service. */
    readonly dropped: number;
  };
  /** Rows that the mapper refuses now. */
  readonly refusedRows: number;
  /** The first readings that are sent with another value, are new, or are no longer sent. */
  readonly differences: readonly Difference[];
  /** Later runs that have delivered dates of it. */
  readonly later: readonly LaterDates[];
  /** Whether those dates are sent all the same. */
  readonly overwrites: boolean;
  /** Earlier or later runs whose payload is no longer kept, so that they are missing here. */
  readonly notKept: readonly string[];
}

export interface Difference {
  readonly target: string;
  readonly date: string;
  readonly version: string | null;
  /** Null when it was not accepted before. */
  readonly before: number | null;
  /** Null when it is not in the new payload. */
  readonly after: number | null;
}

interface LaterDates {
  readonly run: string;
  readonly file: string;
  readonly readings: number;
  readonly from: string;
  readonly to: string;
  /** The first dates. */
  readonly dates: readonly string[];
}

const DIFFERENCES_MAX = 1_000;
const DATES_MAX = 1_000;

/** Throws `RejectedError` when the file cannot be or was not mapped, or its input is not kept. */
export async function planReplay(
  of: Run,
  wish: ReplayWish,
  config: GatewayConfig,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<ReplayPlan> {
  assertMapped(of);
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  try {
    const spool = await openSpool(config.spool);
    const parts = {
      ...(await bindingParts(config, folder, { triggerLists: ledger.triggerLists, shared: null })),
      spool,
      ledger,
    };
    const { binding } = await replayBinding(of, wish, parts);
    const attempts = await attemptsBefore(of, ledger);
    await bringInput(attempts, spool, join(folder, "input"));
    const { mapped, mapper } = await mapAgain(of, binding, config, folder, signal);
    const later = await laterRunsOf({ of, before: "~", targets: mapped.targets }, parts);
    const sets = {
      before: new ReadingSet(join(folder, "before")),
      later: new ReadingSet(join(folder, "later")),
    };
    try {
      const gone = [
        ...(await collectAccepted(attempts, sets.before, parts)),
        ...(await collectAccepted(later, sets.later, parts)),
      ];
      const comparison = new Comparison(sets, wish, later);
      for await (const { body } of bodiesOf((span) => openKept(join(folder, "segment"), span), mapped.batches))
        for (const element of parseBody(body)) comparison.take(element);
      return {
        run: of.id,
        drop: of.drop,
        file: of.path,
        trigger: binding.trigger,
        mapper,
        refusedRows: mapped.rejectedCount,
        overwrites: wish.overwrite,
        notKept: gone.map(({ id }) => id),
        ...comparison.result(mapped.points),
      };
    } finally {
      await sets.before.close();
      await sets.later.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function bringInput(attempts: readonly Run[], spool: Spool, to: string): Promise<void> {
  for (const { id, sha256, size } of attempts) {
    if (!(await spool.copyInput(id, to))) continue;
    // A copy of an interrupted fetch has the right size, but not yet the right bytes.
    if (sha256 === null ? (await stat(to)).size === size : (await digestOfFile(to)) === sha256) return;
  }
  throw new RejectedError("HG-RUN-009", {
    operation: "replay",
    subject: attempts[0]?.id ?? "",
    message: "the input is no longer kept, so that the differences cannot be shown",
    hint:
      "`--no-diff` replays it all the same: the gateway fetches the file again, if this version is still at its " +
      "drop.",
  });
}

const WITHOUT_ZONES =
  "Only the hub reads the zones of its sources: `--no-diff` replays the file all the same, with the zones as they " +
  "are then.";

async function mapAgain(
  of: Run,
  bound: Binding,
  config: GatewayConfig,
  folder: string,
  signal: AbortSignal,
): Promise<{ readonly mapped: MappedFile; readonly mapper: MapperIdentity }> {
  const options = { mappers: config.mappers, workers: { ...config.workers, count: 1 } };
  const mapping = openMapping(options, { root: folder }, { log: silentLog, clock: systemClock });
  try {
    const mapper = await mapping.versions.current(bound.mapper.name);
    if (mapper === null)
      throw new ConfigError("HG-MAP-001", {
        operation: "find mapper",
        subject: bound.mapper.name,
        message: `there is no mapper ${bound.mapper.name}`,
      });
    const lookups = await openLookupStore(config.lookups, folder, systemClock);
    const binding = { ...bound, mapper };
    const result = await onlyOne(
      mapping.pool.map(
        [
          {
            runId: of.id,
            inputPath: join(folder, "input"),
            fileName: basename(of.path),
            filePath: of.path,
            binding,
            lookups: await lookups.filesFor(binding),
            // The tables of zones are the hub's, which reads them as they are when the run is mapped.
            ...(binding.zones === undefined ? {} : { zones: null }),
            segmentPath: join(folder, "segment"),
          },
        ],
        signal,
      ),
    );
    if (result.status === "mapped") return { mapped: result, mapper };
    const { reason } = result;
    const hint = reason.code === "HG-MAP-019" ? WITHOUT_ZONES : reason.hint;
    throw new RejectedError("HG-CLI-006", {
      operation: "replay",
      subject: of.path,
      message:
        `${placeWords(reason.place)}${reason.message}${foundWords(reason.message, reason.place)} ` +
        `[${reason.code}, mapper ${mapper.name} ${mapper.version}]`,
      ...(hint === undefined ? {} : { hint }),
    });
  } finally {
    await mapping.close();
  }
}

class Comparison {
  readonly #sets: { readonly before: ReadingSet; readonly later: ReadingSet };
  readonly #wish: ReplayWish;
  readonly #runs: readonly Run[];
  readonly #counts = { sent: 0, added: 0, changed: 0, unchanged: 0, acceptedBefore: 0 };
  readonly #differences: Difference[] = [];
  readonly #later = new Map<string, { readings: number; fromMs: number; toMs: number; dates: Set<string> }>();

  constructor(
    sets: { readonly before: ReadingSet; readonly later: ReadingSet },
    wish: ReplayWish,
    later: readonly Run[],
  ) {
    this.#sets = sets;
    this.#wish = wish;
    this.#runs = later;
  }

  take(element: PushElement): void {
    const target = targetOf(element);
    for (const one of element.data) this.#takeReading(readingOf(element, target, one));
  }

  #takeReading(reading: PayloadReading): void {
    const { before, later } = this.#sets;
    const earlier = before.valueOf(reading);
    before.remove(reading);
    const run = later.runOf(reading);
    if (run !== undefined) {
      this.#noteLater(run, reading);
      if (!this.#wish.overwrite) return;
    }
    if (earlier !== undefined && this.#wish.rejectedOnly) {
      this.#counts.acceptedBefore += 1;
      return;
    }
    this.#counts.sent += 1;
    if (earlier === reading.value) {
      this.#counts.unchanged += 1;
      return;
    }
    this.#counts[earlier === undefined ? "added" : "changed"] += 1;
    this.#differ(reading, earlier ?? null, reading.value);
  }

  #noteLater(run: string, { atMs }: PayloadReading): void {
    const noted = this.#later.get(run) ?? { readings: 0, fromMs: atMs, toMs: atMs, dates: new Set() };
    noted.readings += 1;
    noted.fromMs = Math.min(noted.fromMs, atMs);
    noted.toMs = Math.max(noted.toMs, atMs);
    if (noted.dates.size < DATES_MAX) noted.dates.add(isoOf(atMs));
    this.#later.set(run, noted);
  }

  #differ(reading: PayloadReading, before: number | null, after: number | null): void {
    if (this.#differences.length >= DIFFERENCES_MAX) return;
    const { atMs, version } = reading;
    const date = isoOf(atMs);
    this.#differences.push({ target: wordsOfTarget(reading), date, version: version || null, before, after });
  }

  result(mapped: number): Pick<ReplayPlan, "readings" | "differences" | "later"> {
    for (const reading of this.#sets.before.first(DIFFERENCES_MAX)) this.#differ(reading, reading.value, null);
    return {
      readings: { mapped, ...this.#counts, dropped: this.#sets.before.size },
      differences: this.#differences,
      later: [...this.#later].map(([run, { readings, fromMs, toMs, dates }]) => ({
        run,
        file: this.#runs.find(({ id }) => id === run)?.path ?? "",
        readings,
        from: isoOf(fromMs),
        to: isoOf(toMs),
        dates: [...dates].sort(),
      })),
    };
  }
}

function isoOf(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}

function wordsOfTarget({ target }: PayloadReading): string {
  return Object.entries(JSON.parse(target) as Record<string, unknown>)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(" ");
}
