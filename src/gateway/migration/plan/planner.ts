/**
 * Plans one file: fetches it, opens it when it is a container, and maps it into a temporary folder; nothing is sent.
 */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { onlyOne } from "#core/promises.ts";
import { commonText } from "#core/text.ts";
import { lookupFile } from "#mapping/contract.ts";
import { targetOf } from "#mapping/segment/payloads.ts";
import type { openMapping } from "#mapping/workers/open.ts";
import type { GatewayConfig } from "../../config.ts";
import { type Drop, fetchFile } from "../../drops/drop.ts";
import type { Reason } from "../../model.ts";
import { type Directory, directoryOf, listContents, openEntry, unpackFault } from "../../runs/unpacking/container.ts";
import { openKept } from "../../spool/kept-files.ts";
import type { Trigger } from "../../triggers/registry.ts";
import { type Archives, type Claims, mapperOf } from "./claims.ts";
import type { HistoryFile } from "./history-files.ts";
import type { FileFault, PlannedFile } from "./plan.ts";
import { shapesOf } from "./series.ts";

type Mapping = ReturnType<typeof openMapping>;

/** The result of a file of the history, and its cost. */
export interface Inspection {
  /** The file itself, or the entries of a container, in their order. */
  readonly planned: readonly PlannedFile[];
  /** Bytes of its batches. */
  readonly sent: number;
}

/** A file on this disk, or an entry that was unpacked to it. */
interface Input {
  readonly file: HistoryFile;
  readonly path: string;
  readonly sha256: string | null;
  /** The number of containers around it. */
  readonly depth: number;
}

/** Fetches and maps one file after the other, as the gateway would. */
export class Planner {
  readonly #config: GatewayConfig;
  readonly #claims: Claims;
  readonly #drops: ReadonlyMap<string, Drop>;
  readonly #mapping: Mapping;
  readonly #scratch: string;

  constructor(
    config: GatewayConfig,
    claims: Claims,
    drops: ReadonlyMap<string, Drop>,
    mapping: Mapping,
    scratch: string,
  ) {
    this.#config = config;
    this.#claims = claims;
    this.#drops = drops;
    this.#mapping = mapping;
    this.#scratch = scratch;
  }

  async inspect(file: HistoryFile, index: number, signal: AbortSignal): Promise<Inspection> {
    const path = join(this.#scratch, String(index));
    try {
      const drop = this.#drops.get(file.drop);
      const fetched = drop === undefined ? null : await fetchFile(drop, file, path, signal);
      return await this.#inspect({ file, path, sha256: fetched?.sha256 ?? null, depth: 0 }, signal);
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      return this.#fault({ file, sha256: null }, thrown);
    } finally {
      await rm(path, { force: true });
    }
  }

  async #inspect(input: Input, signal: AbortSignal): Promise<Inspection> {
    const claim = this.#claims.of(input.file);
    try {
      if (claim.by === "unpacking") return await this.#open(input, claim.archives, signal);
      if (claim.by === "trigger") return await this.#map(input, claim.trigger, signal);
      return { planned: [plannedOf(input, null)], sent: 0 };
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      return this.#fault(input, thrown);
    }
  }

  /** Entry by entry, so that the disk holds one of them at a time beside their container. */
  async #open(
    { file, path, depth, sha256 }: Input,
    { depthMax, ...limits }: Archives,
    signal: AbortSignal,
  ): Promise<Inspection> {
    if (depth >= depthMax)
      return this.#fault(
        { file, sha256 },
        faultOf(file.path, { code: "", message: "the container is nested too deep" }),
      );
    const name = basename(file.path);
    const { entries } = await listContents(path, name, limits, signal);
    if (entries.length === 0) return { planned: [plannedOf({ file, sha256 }, "(archives)")], sent: 0 };
    const directory = await directoryOf(path, name, limits);
    const inspections: Inspection[] = [];
    for (const [nth, entry] of entries.entries()) {
      const own = { ...file, path: `${file.path}!/${entry.path}`, size: entry.size };
      const unpacked = `${path}-${nth}`;
      try {
        const digest = await unpack({ path, name, directory }, entry.path, unpacked, signal);
        inspections.push(await this.#inspect({ file: own, path: unpacked, sha256: digest, depth: depth + 1 }, signal));
      } catch (thrown) {
        if (!(thrown instanceof HeadgateError)) throw thrown;
        inspections.push(this.#fault({ file: own, sha256: null }, thrown));
      } finally {
        await rm(unpacked, { force: true });
      }
    }
    return {
      planned: inspections.flatMap(({ planned }) => planned),
      sent: inspections.reduce((sum, { sent }) => sum + sent, 0),
    };
  }

  async #map(input: Input, trigger: Trigger, signal: AbortSignal): Promise<Inspection> {
    const { file, path } = input;
    const segmentPath = `${path}.segment`;
    try {
      const mapper = await this.#mapping.versions.current(trigger.mapper);
      if (mapper === null)
        return this.#fault(input, faultOf(file.path, { code: "", message: `there is no mapper ${trigger.mapper}` }));
      const { points: pointsMax, bytes: bytesMax } = this.#config.push.batch;
      const result = await onlyOne(
        this.#mapping.pool.map(
          [
            {
              ...{ runId: `plan-${basename(path)}`, inputPath: path, segmentPath },
              ...{ fileName: basename(file.path), filePath: file.path },
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
          ],
          signal,
        ),
      );
      const rejected = result.rejectedCount;
      if (result.status === "failed")
        return this.#fault(input, faultOf(file.path, result.reason), rejected, result.findings);
      const shapes = await shapesOf((span) => openKept(segmentPath, span), result.batches);
      const targets = result.targets.map(({ facts }) => ({ ...facts, shape: shapes.get(targetOf(facts.target)) }));
      return {
        planned: [
          { ...plannedOf(input, trigger.mapper), rejected, targets, points: result.points, found: result.findings },
        ],
        sent: result.batches.reduce((sum, { length }) => sum + length, 0),
      };
    } finally {
      await rm(segmentPath, { force: true });
    }
  }

  #fault(
    input: Pick<Input, "file" | "sha256">,
    why: HeadgateError | FileFault,
    rejected = 0,
    found: PlannedFile["found"] = [],
  ): Inspection {
    const { path } = input.file;
    const fault = why instanceof HeadgateError ? faultOf(path, { code: why.code, message: wordsOf(why) }) : why;
    return {
      planned: [{ ...plannedOf(input, mapperOf(this.#claims.of(input.file))), fault, rejected, found }],
      sent: 0,
    };
  }
}

/** A file of which only the existence is known. */
export function plannedOf({ file, sha256 }: Pick<Input, "file" | "sha256">, mapper: string | null): PlannedFile {
  return { file, mapper, points: 0, rejected: 0, fault: null, targets: [], sha256, found: [] };
}

/** Returns the digest of the entry. */
async function unpack(
  container: { readonly path: string; readonly name: string; readonly directory: Directory },
  entryPath: string,
  to: string,
  signal: AbortSignal,
): Promise<string> {
  const digest = createHash("sha256");
  try {
    const entry = await openEntry(container.path, container.name, entryPath, container.directory);
    entry.on("data", (chunk: Buffer) => digest.update(chunk));
    await pipeline(entry, createWriteStream(to), { signal });
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    throw unpackFault(thrown);
  }
  return digest.digest("hex");
}

/** Why nothing of a file is delivered; in a plan as in a report. */
export function faultOf(path: string, { code, message, place }: Pick<Reason, "code" | "message" | "place">): FileFault {
  const row = place?.row === undefined ? "" : ` (row ${place.row})`;
  return { cause: `${code} ${commonText(message)}`, words: `${path}${row}: ${message}` };
}
