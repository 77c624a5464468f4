/**
 * `migrate undo`: lists the readings of a migration that can be removed, asks for confirmation, and removes them;
 * then the same command can migrate it again.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isoInstant, systemClock } from "#core/clock.ts";
import { ConfigError, HeadgateError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { counted, grouped, noun } from "#core/text.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { takeOwnerLock } from "#gateway/ledger/sqlite/open.ts";
import { allRuns, deliveredRuns } from "#gateway/migration/report/delivered.ts";
import { Expectation } from "#gateway/migration/report/expectation.ts";
import { findMigration, type KnownMigration, remakeReport, writeReport } from "#gateway/migration/report/reports.ts";
import { migrationLedger } from "#gateway/migration/request.ts";
import { type OpenStore, openStore } from "#gateway/migration/store.ts";
import { type RecordedCreation, StructureRecord } from "#gateway/migration/structure/record.ts";
import { StructureSurvey, type Verdict } from "#gateway/migration/structure/removal.ts";
import { pastUndos, UndoRecord } from "#gateway/migration/undo/record.ts";
import { RemovalRanges } from "#gateway/migration/undo/removal-ranges.ts";
import { settleUndo } from "#gateway/migration/undo/state.ts";
import { mayBeDelivered, periodOf, surveyUndo } from "#gateway/migration/undo/undo.ts";
import type { Run } from "#gateway/model.ts";
import { resolveBegun } from "#gateway/provisioning/unfinished-creations.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { TOUCHED_STATES } from "#gateway/states.ts";
import { print, printJson, printTable, styled } from "../output.ts";
import { ask, canAsk } from "../prompt.ts";
import { collectOthers } from "./others.ts";
import { asJson, printSurvey, type Surveyed, sumOf } from "./survey-table.ts";

export interface UndoOptions {
  readonly yes?: boolean;
  readonly withOthers?: boolean;
  /** Structure that the migration created is removed as well. */
  readonly structure?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly by: string;
}

const SHOWN = 60;

export async function undoMigration(
  config: GatewayConfig,
  id: string,
  options: UndoOptions,
  stop: AbortSignal,
): Promise<number> {
  const known = await findMigration(config.spool.path, id);
  await settleUndo(known.folder);
  const data = await undoDelivered(config, known, options, stop);
  const leaving = options.dryRun === true ? data.leaving : new Map<number, number>();
  // Without the removal of readings their structure stays, too.
  const structure =
    options.structure !== true || data.isDeclined ? null : await undoStructure(config, known, options, leaving, stop);
  if (structure !== null && structure.removed !== null && (await isReported(known.folder)))
    await remakeReport(config.spool.path, known.id);
  if (options.json === true) printJson({ ...data.facts, ...(structure === null ? {} : { structure }) });
  return structure?.isDeclined === true ? 1 : data.code;
}

/** True unless nothing was delivered so far. */
async function isReported(folder: string): Promise<boolean> {
  return existsSync(migrationLedger(folder).path) || (await pastUndos(folder)).length > 0;
}

interface DataUndone {
  readonly code: number;
  readonly facts: object;
  readonly isDeclined: boolean;
  /** Points by variable that would be removed. */
  readonly leaving: ReadonlyMap<number, number>;
}

async function undoDelivered(
  config: GatewayConfig,
  known: KnownMigration,
  options: UndoOptions,
  stop: AbortSignal,
): Promise<DataUndone> {
  const place = migrationLedger(known.folder);
  if (!existsSync(place.path)) {
    if (options.json !== true) print(`migration ${known.id} has delivered nothing that is not undone`);
    const facts = { id: known.id, removed: null };
    return { code: 0, facts, isDeclined: false, leaving: new Map() };
  }
  const ledger = await openLedger(place, { clock: systemClock });
  let undone: DataUndone;
  try {
    undone = await new Undoing(config, known, ledger, options, stop).run();
  } finally {
    await ledger.close();
  }
  await settleUndo(known.folder);
  return undone;
}

class Undoing {
  readonly #config: GatewayConfig;
  readonly #known: KnownMigration;
  readonly #ledger: Ledger;
  readonly #options: UndoOptions;
  readonly #stop: AbortSignal;

  constructor(config: GatewayConfig, known: KnownMigration, ledger: Ledger, options: UndoOptions, stop: AbortSignal) {
    this.#config = config;
    this.#known = known;
    this.#ledger = ledger;
    this.#options = options;
    this.#stop = stop;
  }

  async run(): Promise<DataUndone> {
    const samples = new Map<string, Run>();
    for await (const run of allRuns(this.#ledger, TOUCHED_STATES))
      if (!samples.has(run.binding.service)) samples.set(run.binding.service, run);
    const ranges = new RemovalRanges(join(this.#known.folder, "undo.sqlite"));
    const stores = new Map<string, OpenStore>();
    try {
      const found: Surveyed[] = [];
      for (const [service, sample] of samples) {
        const store = openStore(this.#config, service);
        stores.set(service, store);
        found.push(await this.#survey(service, sample, store, ranges));
      }
      return await this.#decide(found, ranges, stores);
    } finally {
      ranges.close();
      for (const store of stores.values()) await store.close();
    }
  }

  async #survey(service: string, sample: Run, store: OpenStore, ranges: RemovalRanges): Promise<Surveyed> {
    const { folder } = this.#known;
    const own = new Expectation(join(folder, "undo-own.sqlite"));
    const theirs = new Expectation(join(folder, "undo-others.sqlite"));
    try {
      const spool = await openSpool({ ...this.#config.spool, path: join(folder, "spool") });
      const parts = { ledger: this.#ledger, spool };
      const gone = await own.collect(runsTo(service, this.#ledger), parts, mayBeDelivered);
      const targets = own.targets().map(({ target }) => target);
      const others = await collectOthers(this.#config, this.#known, targets, sample, theirs);
      const survey = await surveyUndo(
        {
          ...{ own, others: theirs, ranges, store },
          withOthers: this.#options.withOthers === true,
          tick: (done, of) => this.#report(done, of),
        },
        this.#stop,
      );
      return { ...survey, service, others, gone: gone.map(({ path, id }) => `${path} (run ${id})`) };
    } finally {
      own.close();
      theirs.close();
    }
  }

  #report(done: number, of: number): void {
    if (done % REPORT_EVERY === 0) process.stderr.write(`${done} of ${of} variables checked\n`);
  }

  async #decide(
    found: readonly Surveyed[],
    ranges: RemovalRanges,
    stores: ReadonlyMap<string, OpenStore>,
  ): Promise<DataUndone> {
    const { dryRun, json, yes } = this.#options;
    if (json !== true) printSurvey(this.#known.id, found, dryRun === true);
    const loss = found.some(({ gone }) => gone.length > 0);
    const facts = { id: this.#known.id, services: found.map(asJson) };
    const variables = found.flatMap((one) => one.variables).filter(({ calls }) => calls > 0);
    const leaving = new Map(variables.map(({ variableId, points: going }) => [variableId, going]));
    const undone = (removed: object | null, code: number): DataUndone => ({
      ...{ code, leaving, isDeclined: false, facts: { ...facts, removed } },
    });
    if (dryRun === true) return undone(null, loss ? 1 : 0);
    const points = sumOf(variables, "points");
    if (yes !== true) {
      const what = `${grouped(points)} ${noun(points, "point")} of ${counted(variables.length, "variable")}`;
      if (!canAsk())
        throw new ConfigError("HG-MIGR-010", {
          operation: "undo migration",
          subject: this.#known.id,
          message: `${what} would be removed, and there is no terminal to ask for confirmation`,
        });
      const answer = await ask(`Remove ${what}? It cannot be undone. [y/N] `, this.#stop);
      if (!/^y(es)?$/i.test(answer)) {
        print("nothing was removed");
        return { ...undone(null, 1), isDeclined: true };
      }
    }
    const removed = await this.#remove(found, ranges, stores);
    if (json !== true)
      print(
        `removed: ${grouped(removed.points)} points, ${grouped(removed.versions)} versions; the same \`migrate\` ` +
          "command delivers them again",
      );
    return undone(removed, loss ? 1 : 0);
  }

  async #remove(
    found: readonly Surveyed[],
    ranges: RemovalRanges,
    stores: ReadonlyMap<string, OpenStore>,
  ): Promise<{ readonly points: number; readonly versions: number }> {
    const { folder } = this.#known;
    const storeOf = new Map(
      found.flatMap(({ service, variables }) =>
        variables.map(({ variableId }) => [variableId, stores.get(service)] as const),
      ),
    );
    const record = await UndoRecord.begin(folder, isoInstant(systemClock.now()), this.#options.by);
    const sum = { points: 0, versions: 0 };
    try {
      for (const range of ranges.all()) {
        this.#stop.throwIfAborted();
        const store = storeOf.get(range.variableId);
        if (store === undefined) continue;
        const { points, versions } = await store.deleteData(periodOf(range.variableId, range), this.#stop);
        await record.removed({ ...range, points, versions });
        sum.points += points;
        sum.versions += versions;
      }
      await this.#note(sum);
      await record.end(isoInstant(systemClock.now()));
    } catch (thrown) {
      throw this.#stop.aborted || thrown instanceof HeadgateError ? interrupted(this.#known.id, thrown) : thrown;
    } finally {
      await record.close();
    }
    await writeReport(this.#known, this.#ledger, null, null);
    return sum;
  }

  /** An event in the history of each file. */
  async #note({ points }: { readonly points: number }): Promise<void> {
    const detail = `by ${this.#options.by}, with ${grouped(points)} ${noun(points, "point")} of the migration`;
    for await (const { arrivalId, id } of deliveredRuns(this.#ledger))
      await this.#ledger.addEvent({ arrivalId, runId: id, operationId: null, what: "run.undone", detail });
  }
}

const REPORT_EVERY = 100;

async function* runsTo(service: string, ledger: Ledger): AsyncGenerator<Run> {
  for await (const run of allRuns(ledger, TOUCHED_STATES)) if (run.binding.service === service) yield run;
}

function interrupted(id: string, cause: unknown): ConfigError {
  return new ConfigError("HG-MIGR-011", {
    operation: "undo migration",
    subject: id,
    message: "the undo was interrupted: part of the migration is removed",
    cause,
  });
}

// `migrate undo --structure`: lists the unused sites, sources and variables that a migration created, asks for
// confirmation, and removes them.

interface UndoneStructure {
  /** The verdict on each thing, with the reason. */
  readonly found: readonly Verdict[];
  /** The numbers of removed things of each kind; null when there was nothing to do. */
  readonly removed: Readonly<Record<Verdict["entity"], number>> | null;
  readonly isDeclined: boolean;
}

/** `leaving`: points by variable that will have been removed by then, for a dry run. */
async function undoStructure(
  config: GatewayConfig,
  { id, folder }: KnownMigration,
  options: UndoOptions,
  leaving: ReadonlyMap<number, number>,
  stop: AbortSignal,
): Promise<UndoneStructure> {
  const lock = takeOwnerLock(migrationLedger(folder).path);
  const record = await StructureRecord.open(folder, systemClock);
  const stores = new Map<string, OpenStore>();
  try {
    for (const { service } of record.entries) if (!stores.has(service)) stores.set(service, openStore(config, service));
    return await new UndoingStructure(id, record, stores, options, stop).run(leaving);
  } finally {
    await record.close();
    for (const store of stores.values()) await store.close();
    lock.release();
  }
}

class UndoingStructure {
  readonly #id: string;
  readonly #record: StructureRecord;
  readonly #stores: ReadonlyMap<string, OpenStore>;
  readonly #options: UndoOptions;
  readonly #stop: AbortSignal;

  constructor(
    id: string,
    record: StructureRecord,
    stores: ReadonlyMap<string, OpenStore>,
    options: UndoOptions,
    stop: AbortSignal,
  ) {
    this.#id = id;
    this.#record = record;
    this.#stores = stores;
    this.#options = options;
    this.#stop = stop;
  }

  async run(leaving: ReadonlyMap<number, number>): Promise<UndoneStructure> {
    const { dryRun, json, yes } = this.#options;
    const found: Verdict[] = [];
    for (const [service, { client }] of this.#stores) {
      await resolveBegun(client, this.#record.journal(service), this.#stop);
      found.push(...(await new StructureSurvey(client, leaving).look(this.#of(service), this.#stop)));
    }
    if (json !== true) printFound(this.#id, found, dryRun === true);
    const going = found.filter(({ verdict }) => verdict !== "stays");
    if (dryRun === true || going.length === 0) return { found, removed: null, isDeclined: false };
    if (yes !== true && !(await this.#mayGo(going.length))) return { found, removed: null, isDeclined: true };
    const removed = { variable: 0, source: 0, site: 0 };
    const last: Verdict[] = [];
    for (const [service, { client }] of this.#stores)
      for (const verdict of await this.#remove(service, new StructureSurvey(client))) {
        last.push(verdict);
        if (verdict.verdict === "goes") removed[verdict.entity] += 1;
      }
    if (json !== true)
      print(`removed: ${removed.variable} variables, ${removed.source} sources, ${removed.site} sites`);
    return { found: last, removed, isDeclined: false };
  }

  #of(service: string): readonly RecordedCreation[] {
    return this.#record.entries.filter((one) => one.service === service && one.state === "created");
  }

  async #mayGo(count: number): Promise<boolean> {
    const what = `${count} variables, sources and sites that this migration created`;
    if (!canAsk())
      throw new ConfigError("HG-MIGR-010", {
        operation: "undo migration",
        subject: this.#id,
        message: `${what} would be removed, and there is no terminal to ask for confirmation`,
      });
    const answer = await ask(`Remove ${what}? [y/N] `, this.#stop);
    return /^y(es)?$/i.test(answer);
  }

  /** After a crash between a removal and its line, the same command finds the thing already removed. */
  async #remove(service: string, survey: StructureSurvey): Promise<readonly Verdict[]> {
    const own = this.#of(service);
    const verdicts: Verdict[] = [];
    for (const entity of ["variable", "source", "site"] as const)
      for (const one of own.filter((each) => each.entity === entity)) {
        this.#stop.throwIfAborted();
        const verdict = await survey.remove(one, this.#stop);
        faultPoint("structure.removed");
        if (verdict.verdict !== "stays") await this.#record.removed(one.nth, this.#options.by);
        verdicts.push(verdict);
      }
    return verdicts;
  }
}

function printFound(id: string, found: readonly Verdict[], dryRun: boolean): void {
  print(styled("bold", `structure that migration ${id} created${dryRun ? " (nothing is removed)" : ""}`));
  if (found.length === 0) print("  none is left");
  const rows = found
    .slice(0, SHOWN)
    .map(({ entity, name, id: own, target, verdict, why }) => [
      `  ${entity}`,
      name,
      String(own),
      target,
      why === null ? verdict : `${verdict}: ${why}`,
    ]);
  if (rows.length > 0) printTable(["  what", "name", "id", "for", "decision"], rows);
  if (found.length > SHOWN) print(`  … and ${found.length - SHOWN} more (--json lists all)`);
}
