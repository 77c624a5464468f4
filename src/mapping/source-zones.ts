/** The zones of the sources at a hub, for local times in the zone of the source of their reading. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { identifierKind, type SourceIdentifier, type TargetTexts } from "#wire/target.ts";
import type { IdZones, ZoneFile, ZoneTable } from "./contract.ts";
import { FileError, RowError } from "./readers/row-error.ts";
import { shown } from "./targets.ts";

/** Limit on the bytes of the tables that a thread caches for the next file, beside the latest. */
const KEPT_BYTES_MAX = 32_000_000;
const kept = new Map<string, { readonly index: ZoneIndex; readonly bytes: number }>();

/** Of one file. */
export class SourceZones {
  readonly #file: ZoneFile | null | undefined;
  #index: ZoneIndex | undefined;
  /** The reason why the file has to be mapped again with the table, also when the mapper ignored it. */
  missing: ConfigError | undefined;

  /** Null: the run is not bound to the table yet. Undefined: the zones of the sources are not known here. */
  constructor(file: ZoneFile | null | undefined) {
    this.#file = file;
  }

  /** Throws a `FileError` or a `ConfigError` when there is no table. */
  require(): ZoneIndex {
    if (this.#index !== undefined) return this.#index;
    if (this.#file === undefined)
      throw new FileError("the zones of the sources are known only to a hub, for the files that it takes itself", {
        hint: "Name the zone of the file in the trigger's metadata, for example: `timeZone: Europe/Brussels`",
      });
    if (this.#file === null) {
      this.missing = new ConfigError("HG-MAP-019", {
        operation: "map file",
        subject: "zones of the sources",
        message: "dates of the file have the zones of the sources, and the run is not bound to these yet",
      });
      throw this.missing;
    }
    this.#index = indexOf(this.#file);
    return this.#index;
  }

  /** The zone of the source to which the target belongs. Throws a `RowError` when that is not known. */
  zoneOf(target: TargetTexts): string {
    const kind = identifierKind(target) ?? "variableId";
    const value = target[kind] ?? "";
    const [zone, ...others] = this.require().zonesOf(kind, value);
    if (zone === undefined) throw unknown(kind, value);
    if (others.length > 0) throw ambiguous(kind, value, [zone, ...others]);
    return zone;
  }
}

class ZoneIndex {
  readonly #table: ZoneTable;
  readonly #texts = new Map<string, ReadonlyMap<string, readonly number[]>>();

  constructor(table: ZoneTable) {
    this.#table = table;
    for (const [kind, entries] of Object.entries(table.texts))
      this.#texts.set(kind, new Map(entries.map(([text, ...zones]) => [text, zones])));
  }

  /** Several where sources in different zones share the text. */
  zonesOf(kind: "variableId" | SourceIdentifier, value: string | number): readonly string[] {
    const { zones, ids } = this.#table;
    const found =
      kind === "variableId" || kind === "sourceId"
        ? zoneOfId(ids[kind], Number(value))
        : (this.#texts.get(kind)?.get(String(value)) ?? []);
    return found.flatMap((at) => zones[at] ?? []);
  }
}

function zoneOfId(ranges: IdZones, id: number): readonly number[] {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [first = 0, last = 0, zone = 0] = ranges[middle] ?? [];
    if (id < first) high = middle - 1;
    else if (id > last) low = middle + 1;
    else return [zone];
  }
  return [];
}

/** Invariant 10: a run maps with exactly the table that it is bound to. */
function indexOf({ path, digest }: ZoneFile): ZoneIndex {
  const known = kept.get(digest);
  if (known !== undefined) return known.index;
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw unusable(`it cannot be read: ${wordsOf(cause)}`, cause);
  }
  if (hash("sha256", bytes) !== digest) throw unusable("its content is not the one that this run was made with");
  const index = new ZoneIndex(JSON.parse(bytes.toString("utf8")) as ZoneTable);
  kept.set(digest, { index, bytes: bytes.length });
  let total = 0;
  for (const [one, { bytes: size }] of [...kept].toReversed()) {
    total += size;
    if (total > KEPT_BYTES_MAX && one !== digest) kept.delete(one);
  }
  return index;
}

function unusable(why: string, cause?: unknown): ConfigError {
  return new ConfigError("HG-MAP-030", {
    operation: "read zones",
    subject: "zones of the sources",
    message: `the table of the zones of the sources cannot be used: ${why}`,
    hint: "Process the file again (POST /storage/{id}/process): it is bound to the zones as they are then.",
    ...(cause === undefined ? {} : { cause }),
  });
}

const ZONE_HINT = "name the zone of the file in the trigger's metadata, for example: `timeZone: Europe/Brussels`";

function unknown(kind: string, value: string | number): RowError {
  const what = kind === "variableId" ? "variable" : "source";
  return new RowError(`the date has no zone, and there is no ${what} with ${kind} ${shown(value)} that has one`, {
    text: String(value),
    hint: `Create the ${what} and process the file again (POST /storage/{id}/process), or ${ZONE_HINT}`,
  });
}

function ambiguous(kind: string, value: string | number, zones: readonly string[]): RowError {
  const message = `the date has no zone, and the sources with ${kind} ${shown(value)} are in ${zones.join(" and ")}`;
  return new RowError(message, {
    text: String(value),
    hint: `Identify the source by a field that no other shares, or ${ZONE_HINT}`,
  });
}
