/** The structure of a migration: missing parts are created before delivery, recorded, and reported. */
import { basename, extname } from "node:path";
import { systemClock } from "#core/clock.ts";
import { loadDocument } from "#core/config/document.ts";
import { ConfigError, invalidOption, wordsOf } from "#core/errors.ts";
import { readRows } from "#mapping/readers/master-data/rows.ts";
import type { GatewayConfig } from "../../config.ts";
import type { GatewayDependencies } from "../../gateway.ts";
import { aloneAtLedger } from "../../ledger/open.ts";
import { takeOwnerLock } from "../../ledger/sqlite/open.ts";
import { contextOf } from "../../provisioners.ts";
import { type ProvisionTemplate, provisionTemplate } from "../../provisioning/options.ts";
import { type Alone, creationWords, openProvisioner, type Provisioned } from "../../provisioning/provisioner.ts";
import { readTable, TABLE_RULES } from "../../provisioning/table.ts";
import { wantedByTemplate } from "../../provisioning/template.ts";
import type { Creation, Difference, Wanted } from "../../provisioning/wanted.ts";
import type { MissingTarget } from "../plan/dry-run.ts";
import { type MigrationRequest, migrationLedger } from "../request.ts";
import { type RecordedCreation, StructureRecord } from "./record.ts";

export interface PlannedStructure {
  /** Targets that will exist by then, in words. */
  readonly covered: ReadonlySet<string>;
  /** Why the service could not be asked about all targets; null when it could. */
  readonly unaskedBecause: string | null;
  readonly wouldCreate: readonly Creation[];
  readonly impossible: readonly string[];
  readonly differences: readonly Difference[];
}

/** The structure that one call created, and the command that undoes it. */
export interface StructureResult {
  readonly created: readonly Creation[];
  readonly differences: readonly Difference[];
  readonly undo: string;
}

type Service = GatewayConfig["services"][number];

const IMPOSSIBLE_SHOWN = 20;

export class MigrationStructure {
  readonly #service: string | null;
  readonly #file: ProvisionFile | null;
  readonly #record: StructureRecord | null;
  /** Numbers of structure that earlier calls found or created. */
  readonly #before: ReadonlySet<number>;
  readonly #alone: Alone;

  private constructor(
    config: GatewayConfig,
    parts: {
      readonly service: string | null;
      readonly file: ProvisionFile | null;
      readonly record: StructureRecord | null;
    },
  ) {
    this.#service = parts.service;
    this.#file = parts.file;
    this.#record = parts.record;
    this.#before = new Set(createdIn(parts.record).map(({ nth }) => nth));
    // A gateway of the same configuration may need the same structure at this moment.
    this.#alone = aloneAtLedger(config.ledger, systemClock);
  }

  /** `path`: the file of `--provision`. `folder` null: for a plan, which creates nothing. */
  static async open(
    config: GatewayConfig,
    { service }: Pick<MigrationRequest, "service">,
    path: string | undefined,
    folder: string | null,
    stop: AbortSignal,
  ): Promise<MigrationStructure> {
    const file = path === undefined ? null : await readProvisionFile(path, stop);
    const record = folder === null ? null : await StructureRecord.open(folder, systemClock);
    return new MigrationStructure(config, { service, file, record });
  }

  async close(): Promise<void> {
    await this.#record?.close();
  }

  /** The triggers create the structure of their files by the template, and check it whatever they did before. */
  apply(own: GatewayConfig): GatewayConfig {
    if (this.#file?.kind !== "template") return own;
    const provision = { ...this.#file.template, when: "auto" as const };
    const triggers = own.triggers.map((trigger) => ({
      ...trigger,
      provision,
      guard: { ...trigger.guard, targets: "hold" as const },
    }));
    return { ...own, triggers };
  }

  /** For the gateway of the migration. */
  get provisioning(): GatewayDependencies["provisioning"] {
    const record = this.#record;
    return record === null ? undefined : { journal: (service) => record.journal(service), alone: this.#alone };
  }

  /** The structure that would be created. `missing`: targets of the files that the account lacks. */
  async plan(
    own: GatewayConfig,
    missing: readonly MissingTarget[],
    stop: AbortSignal,
  ): Promise<PlannedStructure | null> {
    const file = this.#file;
    if (file === null) return null;
    const wanted =
      file.kind === "table"
        ? file.wanted
        : missing.flatMap((one) =>
            wantedByTemplate(file.template, [one.facts], contextOf(runOf(own, basename(one.file)))),
          );
    const { created, impossible, differences, error } = await this.#provision(own, wanted, true, stop);
    // Like the plan itself, it reports the part that could be found.
    const unaskedBecause = error === null ? null : wordsOf(error);
    const variables = new Set(created.filter(({ entity }) => entity === "variable").map(({ target }) => target));
    const covered = new Set(wanted.filter(({ words }) => variables.has(words)).flatMap(({ meant }) => meant));
    return { covered, wouldCreate: created, impossible, differences, unaskedBecause };
  }

  /**
   * Called before anything is sent: creations that an earlier call left open are resolved, and missing structure of a
   * table is created, all of it or, when a part cannot be created, nothing. Then throws `ConfigError` HG-MIGR-021;
   * otherwise errors of the client.
   */
  async prepare(own: GatewayConfig, folder: string, note: (line: string) => void, stop: AbortSignal): Promise<void> {
    const record = this.#record;
    if (record === null) return;
    const wanted = this.#file?.kind === "table" ? this.#file.wanted : [];
    const open = record.entries.filter(({ state }) => state === "begun");
    if (wanted.length === 0 && open.length === 0) return;
    const lock = takeOwnerLock(migrationLedger(folder).path);
    try {
      for (const name of new Set(open.map(({ service }) => service))) {
        const { error } = await this.#provision(own, [], false, stop, name);
        if (error !== null) throw error;
      }
      if (wanted.length > 0) await this.#create(own, wanted, record, note, stop);
    } finally {
      lock.release();
    }
  }

  async #create(
    own: GatewayConfig,
    wanted: readonly Wanted[],
    record: StructureRecord,
    note: (line: string) => void,
    stop: AbortSignal,
  ): Promise<void> {
    const looked = await this.#provision(own, wanted, true, stop);
    if (looked.error !== null) throw looked.error;
    if (looked.impossible.length > 0) throw lacking(looked.impossible);
    const done = await this.#provision(own, wanted, false, stop);
    for (const one of done.created) note(`created ${creationWords(one)}`);
    if (done.error !== null) throw done.error;
    if (done.impossible.length > 0) throw lacking(done.impossible);
    await record.differs(done.differences);
  }

  /** Null when none was requested, and none was created. */
  result(id: string): StructureResult | null {
    if (this.#record === null) return null;
    const { differences } = this.#file?.kind === "table" ? this.#record.report() : { differences: [] };
    const created = createdIn(this.#record).filter(({ nth }) => !this.#before.has(nth));
    if (this.#file === null && created.length === 0) return null;
    return { created, differences, undo: `headgate migrate undo ${id} --structure` };
  }

  async #provision(
    own: GatewayConfig,
    wanted: readonly Wanted[],
    dryRun: boolean,
    stop: AbortSignal,
    name: string | null = this.#service,
  ): Promise<Provisioned> {
    const service = serviceOf(own, name);
    const provisioner = openProvisioner(service, own.push.timeouts, systemClock, this.#alone);
    try {
      const journal = this.#record?.journal(service.name) ?? null;
      return await provisioner.provision({ wanted, dryRun, journal }, stop);
    } finally {
      await provisioner.close();
    }
  }
}

function createdIn(record: StructureRecord | null): readonly RecordedCreation[] {
  return record?.entries.filter(({ state }) => state === "created") ?? [];
}

function serviceOf({ services, triggers }: GatewayConfig, named: string | null): Service {
  const names = new Set(triggers.map(({ service }) => service ?? services[0]?.name));
  const name = named ?? (names.size === 1 ? [...names][0] : undefined);
  const found = services.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw name === undefined
    ? invalidOption("--provision", "the triggers send to several services: name one with --service")
    : invalidOption("--service", `there is no service ${name} in the configuration`);
}

/** The variables of a template for the future run of a file. */
function runOf({ triggers, drops }: GatewayConfig, path: string): Parameters<typeof contextOf>[0] {
  const [trigger] = triggers;
  const binding = { trigger: trigger?.name ?? "", settings: trigger?.metadata ?? {} };
  return { drop: drops[0]?.name ?? "", path, binding };
}

function lacking(impossible: readonly string[]): ConfigError {
  const shown = impossible.slice(0, IMPOSSIBLE_SHOWN).map((words) => `  ${words}`);
  const more = impossible.length - shown.length;
  return new ConfigError("HG-MIGR-021", {
    operation: "create structure",
    subject: `${impossible.length} targets`,
    message:
      "nothing was created, since a part of the structure cannot be created:\n" +
      `${shown.join("\n")}${more > 0 ? `\n  … and ${more} more` : ""}`,
  });
}

// Reads the file of `--provision`: a template, as triggers have it, or a table of sites, sources and variables.

type ProvisionFile =
  | { readonly kind: "template"; readonly template: ProvisionTemplate }
  | { readonly kind: "table"; readonly wanted: readonly Wanted[] };

/** Throws `ConfigError` when the file cannot be read, or is ambiguous (HG-MIGR-020, HG-CONF-002). */
async function readProvisionFile(path: string, signal: AbortSignal): Promise<ProvisionFile> {
  const extension = extname(path).toLowerCase();
  if (extension === ".yaml" || extension === ".yml")
    return { kind: "template", template: loadDocument(path, provisionTemplate) };
  if (extension !== ".csv" && extension !== ".xlsx")
    throw invalidOption("--provision", `${path} is neither a template (.yaml) nor a table (.csv, .xlsx)`);
  const file = { path, fileName: basename(path), settings: { encoding: "utf-8" }, rules: TABLE_RULES };
  const rows = await readRows(file, signal).catch((thrown: unknown) => {
    if (signal.aborted) throw thrown;
    throw new ConfigError("HG-MIGR-020", {
      operation: "read master data",
      subject: path,
      message: `${path} cannot be read: ${wordsOf(thrown)}`,
      cause: thrown,
    });
  });
  return { kind: "table", wanted: readTable(file.fileName, rows) };
}
