/** Finds the file, sheet and row of a reading, for command line and console. */

import { ConfigError } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import { pushTarget } from "#wire/push.ts";
import { TARGET_FIELDS, targetWords } from "#wire/target.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch } from "../model.ts";
import { placedAt } from "../operation-rows.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import type { ReadingOriginRow, readingEndpoints } from "../operations/api/readings.ts";
import { type FoundReading, findReadings, type OnDamage } from "../spool/search.ts";
import type { ReadingQuery } from "../spool/target-index.ts";
import type { QueryParts } from "./parts.ts";

/** A reading with the history of its file. */
export interface TracedReading extends FoundReading {
  readonly file: number;
  readonly drop: string;
  readonly path: string;
  readonly state: string;
  readonly operationId: string | null;
  readonly mapper: string;
}

const FOUND_MAX = 50;

/** The newest run first. */
export async function traceReadings(
  spoolRoot: string,
  query: ReadingQuery,
  ledger: Pick<Ledger, "trace">,
  onDamage: OnDamage,
): Promise<readonly TracedReading[]> {
  const found: TracedReading[] = [];
  for await (const reading of findReadings(spoolRoot, query, onDamage)) {
    found.push(...(await withHistory(reading, ledger)));
    if (found.length >= FOUND_MAX) break;
  }
  return found;
}

async function withHistory(reading: FoundReading, ledger: Pick<Ledger, "trace">): Promise<TracedReading[]> {
  const files = await ledger.trace(reading.runId);
  return files.flatMap(({ arrival, runs }) =>
    runs
      .filter(({ run }) => run.id === reading.runId)
      .map(({ run, batches }) => ({
        ...reading,
        file: arrival.id,
        drop: arrival.drop,
        path: arrival.path,
        state: run.state,
        operationId: leafOf(batches, reading)?.operationId ?? null,
        mapper: `${run.binding.mapper.name} ${run.binding.mapper.version}`,
      })),
  );
}

/** The batch that was sent with the reading: a split keeps the readings in their order. */
function leafOf(
  batches: readonly Batch[],
  { sequence, position }: Pick<FoundReading, "sequence" | "position">,
): Batch | null {
  const batch = batches.find((one) => one.sequence === sequence);
  if (batch?.state !== "split") return batch ?? null;
  const first = batches.find((one) => one.sequence === `${sequence}.1`);
  if (first === undefined) return batch;
  const child =
    position < first.points
      ? { sequence: `${sequence}.1`, position }
      : { sequence: `${sequence}.2`, position: position - first.points };
  return leafOf(batches, child);
}

/**
 * The fields of `sourceSerialNumber=M-1 mappingConfig=kWh`, or of JSON; null for a text that names no target. Values
 * may hold blanks: a field begins at its name.
 */
export function targetFields(text: string): ReadingQuery["fields"] | null {
  const given = text.trim().startsWith("{") ? parsedJson(text) : readWords(text);
  const result = pushTarget.strict().safeParse(given);
  if (!result.success || Object.keys(result.data).length === 0) return null;
  return Object.fromEntries(
    Object.entries(result.data).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}

const NUMERIC: ReadonlySet<string> = new Set(["variableId", "sourceId", "variableTypeId"]);

function readWords(text: string): Record<string, string | number> {
  const names = Object.keys(pushTarget.shape).join("|");
  const fields: Record<string, string | number> = {};
  for (const [, name = "", value = ""] of text.matchAll(
    new RegExp(`(?<=^|\\s)(${names})=(.*?)(?=\\s+(?:${names})=|\\s*$)`, "gs"),
  ))
    fields[name] = NUMERIC.has(name) ? Number(value) : value;
  return fields;
}

/** Null for a text that is no instant. */
export function instantMs(text: string): number | null {
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return null;
  }
}

/** Each reading of the operation at the date whose target agrees with the fields. */
async function readingsOfOperation(
  operationId: string,
  { fields, atMs }: ReadingQuery,
  { ledger, spool }: Pick<QueryParts, "ledger" | "spool">,
): Promise<ReadingOriginRow[]> {
  const placed = (await placedAt(operationId, atMs, { ledger, spool })).filter(({ element }) =>
    TARGET_FIELDS.every((name) => {
      const [own, asked] = [element[name], fields[name]];
      return own === undefined || asked === undefined || own === asked;
    }),
  );
  if (placed.length === 0) return [];
  const files = await ledger.trace(operationId);
  return files.flatMap(({ arrival, runs }) =>
    runs
      .filter(({ batches }) => batches.some((one) => one.operationId === operationId))
      .flatMap(({ run }) =>
        placed.slice(0, FOUND_MAX).map(({ element, reading: { value, version = null }, row, sheet }) => ({
          ...{ target: targetWords(element), value, version, row, sheet, operationId },
          ...{ file: arrival.id, drop: arrival.drop, path: arrival.path, run: run.id, state: run.state },
          mapper: `${run.binding.mapper.name} ${run.binding.mapper.version}`,
        })),
      ),
  );
}

export function readingHandlers({
  ledger,
  spool,
  log,
}: Pick<QueryParts, "ledger" | "spool" | "log">): HandlersOf<typeof readingEndpoints> {
  return {
    async readingOrigin({ query: { target, date, operationId } }) {
      const fields = targetFields(target);
      const atMs = instantMs(date);
      const facts = { operation: "trace reading", subject: target };
      if (fields === null)
        throw new ConfigError("HG-OPS-006", {
          ...facts,
          message: `${target} names no target`,
          hint: "Write it as `sourceSerialNumber=M-1 mappingConfig=kWh`.",
        });
      if (atMs === null)
        throw new ConfigError("HG-OPS-006", {
          ...facts,
          message: `${date} is not an instant`,
          hint: "Write it as 2026-03-01T00:00:00Z or with an offset.",
        });
      if (operationId !== undefined)
        return { found: await readingsOfOperation(operationId, { fields, atMs }, { ledger, spool }) };
      const words = targetWords(fields);
      const found = await traceReadings(spool.root, { fields, atMs }, ledger, (damage) => log.warn(damage));
      return {
        found: found.map(({ value, version, file, drop, path, sheet, row, runId, state, operationId, mapper }) => ({
          ...{ target: words, value, version, file, drop, path, sheet, row, run: runId, state, operationId, mapper },
        })),
      };
    },
  };
}
