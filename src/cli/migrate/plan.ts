/** `migrate --dry-run`: maps every file, asks the service what it knows of their targets, and sends nothing. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { DeliveryJournal } from "../../delivery/delivery.ts";
import { createDelivery } from "../../delivery/service-delivery.ts";
import { createDrop } from "../../drops/create.ts";
import type { Drop } from "../../drops/drop.ts";
import { lookupFile } from "../../mapping/lookup.ts";
import { openMapping } from "../../mapping/open.ts";
import type { HistoryFile } from "../../migration/listing.ts";
import { Plan, type PlanFinding, type PlannedFile } from "../../migration/planning.ts";
import type { TargetFacts } from "../../model.ts";
import { systemClock } from "../../support/clock.ts";
import { HeadgateError, InvariantError, wordsOf } from "../../support/errors.ts";
import { silentLog } from "../../support/log.ts";
import { createRegistry } from "../../triggers/registry.ts";
import { print, printTable, sizeWords, styled } from "../output.ts";
import { timeWords } from "./progress.ts";

export interface PlanReport {
  readonly files: number;
  readonly bytes: number;
  /** By mapper; `none` are claimed by no trigger. */
  readonly mappers: Readonly<Record<string, number>>;
  readonly points: number;
  readonly rejected: number;
  readonly targets: number;
  /** In words; null when the service could not be asked. */
  readonly unfit: readonly { readonly target: string; readonly words: string }[] | null;
  readonly unaskedBecause: string | null;
  readonly period: { readonly from: string; readonly to: string } | null;
  /** Of the mapping of all files, measured. */
  readonly mappingSeconds: number;
  readonly findings: readonly PlanFinding[];
}

export async function makePlan(
  config: GatewayConfig,
  files: readonly HistoryFile[],
  tick: (done: number) => void,
  signal: AbortSignal,
): Promise<PlanReport> {
  const scratch = await mkdtemp(join(tmpdir(), "headgate-plan-"));
  const drops = new Map(
    config.drops.map((options) => [options.name, createDrop(options, { log: silentLog })]),
  );
  const mapping = openMapping(config, scratch, { log: silentLog, clock: systemClock });
  const plan = new Plan();
  const mappers: Record<string, number> = {};
  const startMs = systemClock.monotonicMs();
  try {
    await mapping.start(config.triggers.map(({ mapper }) => mapper));
    const planner = new Planner(config, drops, mapping, scratch);
    const queue = files.entries();
    let done = 0;
    const hand = async () => {
      for (const [index, file] of queue) {
        if (signal.aborted) return;
        const planned = await planner.look(file, index, signal);
        plan.add(planned);
        mappers[planned.mapper ?? "none"] = (mappers[planned.mapper ?? "none"] ?? 0) + 1;
        done += 1;
        tick(done);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, hand));
  } finally {
    await mapping.close();
    for (const drop of drops.values()) await drop.close();
    await rm(scratch, { recursive: true, force: true });
  }
  const mappingSeconds = (systemClock.monotonicMs() - startMs) / 1000;
  const asked = await askService(config, plan.samples(), signal);
  const { period } = plan;
  return {
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    mappers,
    ...plan.totals,
    ...asked,
    period:
      period === null
        ? null
        : { from: new Date(period.fromMs).toISOString(), to: new Date(period.toMs).toISOString() },
    mappingSeconds,
    findings: plan.findings(),
  };
}

type Mapping = ReturnType<typeof openMapping>;

class Planner {
  readonly #config: GatewayConfig;
  readonly #drops: ReadonlyMap<string, Drop>;
  readonly #mapping: Mapping;
  readonly #scratch: string;
  readonly #registry;

  constructor(config: GatewayConfig, drops: ReadonlyMap<string, Drop>, mapping: Mapping, scratch: string) {
    this.#config = config;
    this.#drops = drops;
    this.#mapping = mapping;
    this.#scratch = scratch;
    this.#registry = createRegistry(config.triggers);
  }

  async look(file: HistoryFile, index: number, signal: AbortSignal): Promise<PlannedFile> {
    const trigger = this.#registry.claim(file.path, "SendViaFtp", file.drop).claimed;
    const inputPath = join(this.#scratch, `${index}.input`);
    const segmentPath = join(this.#scratch, `${index}.segment`);
    const nothing = { file, points: 0, rejected: 0, fault: null, targets: [] };
    try {
      await this.#drops.get(file.drop)?.fetch(file, inputPath, signal);
      const sha256 = await digestOf(inputPath);
      if (trigger === null) return { ...nothing, mapper: null, sha256 };
      const mapper = await this.#mapping.versions.current(trigger.mapper);
      if (mapper === null)
        return { ...nothing, mapper: trigger.mapper, sha256, fault: `there is no mapper ${trigger.mapper}` };
      const { points: pointsMax, bytes: bytesMax } = this.#config.push.batch;
      const result = await this.#mapping.pool.map(
        {
          runId: `plan-${index}`,
          inputPath,
          segmentPath,
          fileName: basename(file.path),
          filePath: file.path,
          binding: {
            mapper,
            settings: trigger.metadata,
            rows: trigger.rows,
            rejectShare: trigger.rejectShare,
            limits: { pointsMax, bytesMax },
            version: trigger.version,
          },
          lookups: this.#config.lookups.map(lookupFile),
        },
        signal,
      );
      const own = { file, mapper: trigger.mapper, sha256, rejected: result.rejectedCount };
      if (result.status === "failed") return { ...nothing, ...own, fault: faultWords(file, result.reason) };
      return {
        ...own,
        fault: null,
        points: result.points,
        targets: result.targets.map(({ facts }) => facts),
      };
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      return {
        ...nothing,
        mapper: trigger?.mapper ?? null,
        sha256: `${index}`,
        fault: `${file.path}: ${wordsOf(thrown)}`,
      };
    } finally {
      for (const path of [inputPath, segmentPath, `${segmentPath}.rows`]) await rm(path, { force: true });
    }
  }
}

function faultWords(
  file: HistoryFile,
  {
    message,
    place,
  }: { readonly message: string; readonly place?: { readonly row?: number | undefined } | undefined },
): string {
  return `${file.path}${place?.row === undefined ? "" : ` (row ${place.row})`}: ${message}`;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** By the guard of the gateway: missing and ambiguous targets, units, dates. */
async function askService(
  config: GatewayConfig,
  samples: readonly TargetFacts[],
  signal: AbortSignal,
): Promise<Pick<PlanReport, "unfit" | "unaskedBecause">> {
  const name = config.triggers[0]?.service ?? config.services[0]?.name;
  const options = config.services.find((service) => service.name === name);
  if (options === undefined || samples.length === 0) return { unfit: [], unaskedBecause: null };
  const delivery = createDelivery(options, config.push, { journal: NO_JOURNAL, log: silentLog });
  try {
    const seen = await delivery.inspect(samples, signal);
    if (seen.status !== "seen") return { unfit: null, unaskedBecause: seen.reason };
    // A target that is there in two units is asked for twice.
    const unfit = new Map(
      seen.findings.map(({ target, words }) => [`${target} ${words}`, { target, words }]),
    );
    return { unfit: [...unfit.values()], unaskedBecause: null };
  } finally {
    await delivery.close();
  }
}

/** Nothing is sent, so that nothing is to be journalled. */
const unsent = async (): Promise<never> => {
  throw new InvariantError("HG-BUG-001", {
    operation: "plan migration",
    subject: "delivery",
    message: "a plan sends nothing",
  });
};
const NO_JOURNAL: DeliveryJournal = { batches: unsent, advanceBatch: unsent, splitBatch: unsent };

const SHOWN = 30;

export function printPlan(plan: PlanReport): void {
  print(styled("bold", "plan (nothing was sent)"));
  printTable(
    ["  what", "found"],
    [
      ["  files", `${plan.files}, ${sizeWords(plan.bytes)}`],
      [
        "  mappers",
        Object.entries(plan.mappers)
          .map(([mapper, count]) => `${mapper}: ${count}`)
          .join(", "),
      ],
      [
        "  points",
        `${plan.points.toLocaleString("en")}${plan.rejected === 0 ? "" : `, ${plan.rejected} rows refused`}`,
      ],
      [
        "  targets",
        `${plan.targets}${plan.unfit === null ? "" : `, ${plan.unfit.length} findings of the service`}`,
      ],
      ["  period", plan.period === null ? "no readings" : `${plan.period.from} to ${plan.period.to}`],
      [
        "  mapping took",
        `${timeWords(plan.mappingSeconds)}; the run maps while it delivers, and takes at least as long`,
      ],
    ],
  );
  if (plan.unfit === null)
    print(styled("yellow", `  the service could not be asked about the targets: ${plan.unaskedBecause}`));
  const lines = [
    ...(plan.unfit ?? []).map(({ target, words }) => `${target}: ${words}`),
    ...plan.findings.map(({ words }) => words),
  ];
  for (const line of lines.slice(0, SHOWN)) print(`  ${styled("yellow", "!")} ${line}`);
  if (lines.length > SHOWN) print(`  … and ${lines.length - SHOWN} more (--json tells all)`);
}
