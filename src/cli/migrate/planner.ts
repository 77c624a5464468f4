/** One file of a plan: fetched and mapped into a folder that goes, and nothing is sent. */
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Drop } from "../../drops/drop.ts";
import { lookupFile } from "../../mapping/lookup.ts";
import type { openMapping } from "../../mapping/open.ts";
import type { HistoryFile } from "../../migration/listing.ts";
import type { PlannedFile } from "../../migration/planning.ts";
import { HeadgateError, wordsOf } from "../../support/errors.ts";
import type { Trigger } from "../../triggers/registry.ts";

type Mapping = ReturnType<typeof openMapping>;

/** A planned file, and what it took. */
export interface Look {
  readonly planned: PlannedFile;
  /** Bytes of its batches. */
  readonly sent: number;
}

/** Fetches and maps one file after the other, as the gateway would. */
export class Planner {
  readonly #config: GatewayConfig;
  readonly #drops: ReadonlyMap<string, Drop>;
  readonly #mapping: Mapping;
  readonly #scratch: string;

  constructor(config: GatewayConfig, drops: ReadonlyMap<string, Drop>, mapping: Mapping, scratch: string) {
    this.#config = config;
    this.#drops = drops;
    this.#mapping = mapping;
    this.#scratch = scratch;
  }

  /** `trigger` is the one that claims the file. */
  async look(file: HistoryFile, trigger: Trigger, index: number, signal: AbortSignal): Promise<Look> {
    const inputPath = join(this.#scratch, `${index}.input`);
    const segmentPath = join(this.#scratch, `${index}.segment`);
    const nothing = { file, mapper: trigger.mapper, points: 0, rejected: 0, targets: [] };
    const none = (fault: string, sha256: string | null, rejected = 0): Look => ({
      planned: { ...nothing, fault, sha256, rejected },
      sent: 0,
    });
    let sha256: string | null = null;
    try {
      const fetched = await this.#drops.get(file.drop)?.fetch(file, inputPath, signal);
      sha256 = fetched?.sha256 ?? null;
      const mapper = await this.#mapping.versions.current(trigger.mapper);
      if (mapper === null) return none(`there is no mapper ${trigger.mapper}`, sha256);
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
      const rejected = result.rejectedCount;
      if (result.status === "failed") return none(faultWords(file, result.reason), sha256, rejected);
      const targets = result.targets.map(({ facts }) => facts);
      return {
        planned: { ...nothing, rejected, targets, sha256, fault: null, points: result.points },
        sent: result.batches.reduce((sum, { length }) => sum + length, 0),
      };
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      return none(`${file.path}: ${wordsOf(thrown)}`, sha256);
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
