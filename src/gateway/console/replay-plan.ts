/** Plans replays: maps the kept input of a run again, and compares the result with what was sent. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { basename } from "node:path/posix";
import { systemClock } from "#core/clock.ts";
import { digestOfFile } from "#core/digest.ts";
import { ConfigError, RejectedError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import { foundWords, placeWords } from "#core/text.ts";
import type { MappedFile } from "#mapping/contract.ts";
import { bodiesOf, parseBody, ReadingSet } from "#mapping/segment/payloads.ts";
import { openMapping } from "#mapping/workers/open.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Binding, MapperIdentity, Reason, Run } from "../model.ts";
import { openLookupStore } from "../runs/lookups.ts";
import { assertMapped, type BindingParts, replayBinding } from "../runs/replay-mapper.ts";
import { attemptsBefore, collectAccepted, laterRunsOf } from "../runs/steps/exclusions.ts";
import { openKept } from "../spool/kept-files.ts";
import type { Spool } from "../spool/spool.ts";
import { Comparison, type ReplayPlan, type ReplayWish } from "./replay-comparison.ts";

const undecided = new WeakSet<RejectedError>();

/** A run has what the plan had not: more time, or the zones of the sources. */
export function isUndecided(refusal: RejectedError): boolean {
  return undecided.has(refusal);
}

export interface PlanParts {
  readonly config: GatewayConfig;
  readonly ledger: Ledger;
  readonly spool: Spool;
  /** The configuration that replays are bound to, as it is now; copies of tables are put into the folder. */
  binding(folder: string): BindingParts | Promise<BindingParts>;
  /** Milliseconds of one file, where less than in a run. */
  readonly timeLimitMs?: number;
  /** Whether each plan takes the ones before into account; by default not. */
  readonly isOfSeveral?: boolean;
  /** How the file is replayed without a plan, in a sentence. */
  readonly unplanned: string;
}

/** Has one process that maps, for all its plans. */
export class ReplayPlanner {
  readonly #parts: PlanParts;
  readonly #folder: string;
  #mapping: ReturnType<typeof openMapping> | null = null;
  #plans = 0;
  #planned: ReadingSet | null = null;

  private constructor(parts: PlanParts, folder: string) {
    this.#parts = parts;
    this.#folder = folder;
  }

  static async open(parts: PlanParts): Promise<ReplayPlanner> {
    return new ReplayPlanner(parts, await mkdtemp(join(tmpdir(), "headgate-")));
  }

  /** Throws `RejectedError` when the file cannot be or was not mapped, or its input is not kept. */
  async plan(of: Run, wish: ReplayWish, signal: AbortSignal): Promise<ReplayPlan> {
    const { ledger, spool, unplanned } = this.#parts;
    assertMapped(of);
    this.#plans += 1;
    const place = (name: string) => join(this.#folder, `${this.#plans}.${name}`);
    const { binding } = await replayBinding(of, wish, await this.#parts.binding(this.#folder));
    const attempts = await attemptsBefore(of, ledger);
    await bringInput(attempts, spool, place("input"), unplanned);
    const { mapped, mapper } = await this.#map(of, binding, place, signal);
    const later = await laterRunsOf({ of, before: "~", targets: mapped.targets }, { ledger, spool });
    if (this.#parts.isOfSeveral === true) this.#planned ??= new ReadingSet(join(this.#folder, "planned"));
    const planned = this.#planned;
    const sets = { before: new ReadingSet(place("before")), later: new ReadingSet(place("later")), planned };
    try {
      const gone = [
        ...(await collectAccepted(attempts, sets.before, { ledger, spool })),
        ...(await collectAccepted(later, sets.later, { ledger, spool })),
      ];
      const comparison = new Comparison(sets, wish, later);
      for await (const { body } of bodiesOf((span) => openKept(place("segment"), span), mapped.batches))
        for (const element of parseBody(body)) {
          const sent = comparison.take(element);
          planned?.add(sent, of.path);
        }
      return {
        ...{ run: of.id, drop: of.drop, file: of.path, trigger: binding.trigger, mapper },
        refusedRows: mapped.rejectedCount,
        findings: mapped.findings,
        overwrites: wish.overwrite,
        notKept: gone.map(({ id }) => id),
        ...comparison.result(mapped.points),
      };
    } finally {
      await sets.before.close();
      await sets.later.close();
      for (const name of ["input", "segment"]) await rm(place(name), { force: true });
    }
  }

  get #timeLimitMs(): number {
    const { config, timeLimitMs = Number.POSITIVE_INFINITY } = this.#parts;
    return Math.min(timeLimitMs, config.workers.timeLimit);
  }

  #hintOf({ code, hint }: Reason): string | undefined {
    const { config, unplanned } = this.#parts;
    if (code === "HG-MAP-019") return withoutZones(unplanned);
    const { timeLimit } = config.workers;
    if (code !== "HG-MAP-009" || this.#timeLimitMs === timeLimit) return hint;
    return `${unplanned}. In a run a file may take ${timeLimit / 1_000} s.`;
  }

  async close(): Promise<void> {
    await this.#mapping?.close();
    await this.#planned?.close();
    await rm(this.#folder, { recursive: true });
  }

  async #map(
    of: Run,
    bound: Binding,
    place: (name: string) => string,
    signal: AbortSignal,
  ): Promise<{ readonly mapped: MappedFile; readonly mapper: MapperIdentity }> {
    const { config } = this.#parts;
    const options = { mappers: config.mappers, workers: { ...config.workers, count: 1, timeLimit: this.#timeLimitMs } };
    this.#mapping ??= openMapping(options, { root: this.#folder }, { log: silentLog, clock: systemClock });
    const mapper = await this.#mapping.versions.current(bound.mapper.name);
    if (mapper === null)
      throw new ConfigError("HG-MAP-001", {
        operation: "find mapper",
        subject: bound.mapper.name,
        message: `there is no mapper ${bound.mapper.name}`,
      });
    const lookups = await openLookupStore(config.lookups, this.#folder, systemClock);
    const binding = { ...bound, mapper };
    const job = {
      runId: of.id,
      inputPath: place("input"),
      fileName: basename(of.path),
      filePath: of.path,
      binding,
      lookups: await lookups.filesFor(binding),
      // The tables of zones are the hub's, which reads them as they are when the run is mapped.
      ...(binding.zones === undefined ? {} : { zones: null }),
      segmentPath: place("segment"),
    };
    const result = await onlyOne(this.#mapping.pool.map([job], signal));
    if (result.status === "mapped") return { mapped: result, mapper };
    const { reason } = result;
    const hint = this.#hintOf(reason);
    const refusal = new RejectedError("HG-CLI-006", {
      operation: "replay",
      subject: of.path,
      message:
        `${placeWords(reason.place)}${reason.message}${foundWords(reason.message, reason.place)} ` +
        `[${reason.code}, mapper ${mapper.name} ${mapper.version}]`,
      ...(hint === undefined ? {} : { hint }),
    });
    if (hint !== reason.hint) undecided.add(refusal);
    throw refusal;
  }
}

async function bringInput(attempts: readonly Run[], spool: Spool, to: string, unplanned: string): Promise<void> {
  for (const { id, sha256, size } of attempts) {
    if (!(await spool.copyInput(id, to))) continue;
    // A copy of an interrupted fetch has the right size, but not yet the right bytes.
    if (sha256 === null ? (await stat(to)).size === size : (await digestOfFile(to)) === sha256) return;
  }
  throw new RejectedError("HG-RUN-009", {
    operation: "replay",
    subject: attempts[0]?.id ?? "",
    message: "the input is no longer kept, so that the differences cannot be shown",
    hint: `${unplanned}: the gateway fetches the file again, if this version is still at its drop.`,
  });
}

function withoutZones(unplanned: string): string {
  return `Only the hub reads the zones of its sources. ${unplanned}, with the zones as they are then.`;
}
