/**
 * `migrate undo --structure`: lists the unused sites, sources and variables that a migration created, asks for
 * confirmation, and removes them.
 */

import { systemClock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { takeOwnerLock } from "#gateway/ledger/sqlite/lock.ts";
import type { KnownMigration } from "#gateway/migration/report/reports.ts";
import { migrationLedger } from "#gateway/migration/request.ts";
import { type OpenStore, openStore } from "#gateway/migration/store.ts";
import { type RecordedCreation, StructureRecord } from "#gateway/migration/structure/record.ts";
import { StructureSurvey, type Verdict } from "#gateway/migration/structure/removal.ts";
import { resolveBegun } from "#gateway/provisioning/unfinished-creations.ts";
import { print, printTable, styled } from "../output.ts";
import { ask, canAsk } from "../prompt.ts";
import type { UndoOptions } from "./undo.ts";

export interface UndoneStructure {
  /** The verdict on each thing, with the reason. */
  readonly found: readonly Verdict[];
  /** The numbers of removed things of each kind; null when there was nothing to do. */
  readonly removed: Readonly<Record<Verdict["entity"], number>> | null;
  readonly isDeclined: boolean;
}

/** `leaving`: points by variable that will have been removed by then, for a dry run. */
export async function undoStructure(
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

const SHOWN = 60;

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
