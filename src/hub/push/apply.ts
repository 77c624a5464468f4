/**
 * Applies one operation: resolves targets, judges readings, writes points, counts what became of each.
 * `received = stored + discarded`, always; what is discarded has a reason.
 */
import { type Clock, isoInstant } from "../../support/clock.ts";
import {
  type IdentifierKind,
  ianaZone,
  identifierKind,
  type PushElement,
  targetWords,
} from "../../wire/index.ts";
import type { IngestTransaction, Outcome, TargetQuery, VariableFacts, WriteReading } from "../store/store.ts";
import { READING_RULE, readInstant } from "../time.ts";
import { countReadings } from "./body.ts";
import { Discards } from "./discards.ts";

export interface ApplyParts {
  readonly discardsMax: number;
  readonly clock: Clock;
}

export async function applyOperation(
  transaction: IngestTransaction,
  accountId: number,
  elements: readonly PushElement[],
  parts: ApplyParts,
): Promise<Outcome> {
  const started = isoInstant(parts.clock.now());
  const discards = new Discards(parts.discardsMax);
  const resolve = resolver(transaction, accountId);
  let kindOfCall: IdentifierKind | null = null;
  let stored = 0;
  let replaced = 0;
  for (const element of elements) {
    const target = targetWords(element) || "(no target)";
    const kind = identifierKind(element);
    kindOfCall ??= kind;
    if (kind === null || kind !== kindOfCall) {
      discards.add(target, kind === null ? incomplete(element) : mixed(kindOfCall), element.data.length);
      continue;
    }
    const variable = await resolve(kind, element);
    if (variable === null) {
      discards.add(target, "no such variable in this account", element.data.length);
      continue;
    }
    const readings = judge(element, variable, target, discards);
    replaced += await transaction.write(variable, readings);
    stored += readings.length;
  }
  const finished = isoInstant(parts.clock.now());
  return {
    received: countReadings(elements),
    stored,
    replaced,
    discarded: discards.list(),
    started,
    finished,
  };
}

function incomplete(element: PushElement): string {
  return element.mappingConfig === undefined && element.variableTypeId === undefined
    ? "names neither a variableId, nor a mappingConfig or variableTypeId beside a source"
    : "names no source";
}

/** "One kind of source identifier a call": the kind met first is used (platform facts, *Push*). */
function mixed(kind: IdentifierKind | null): string {
  return `one kind of identifier a call: this call began with ${kind}`;
}

function resolver(transaction: IngestTransaction, accountId: number) {
  const known = new Map<string, VariableFacts | null>();
  return async (kind: IdentifierKind, element: PushElement): Promise<VariableFacts | null> => {
    const value = element[kind];
    if (value === undefined) return null;
    const { mappingConfig, variableTypeId } = element;
    const query: TargetQuery = { by: kind, value, mappingConfig, variableTypeId };
    const key = JSON.stringify(query);
    const found = known.get(key);
    if (found !== undefined) return found;
    const variable = await transaction.findVariable(accountId, query);
    known.set(key, variable);
    return variable;
  };
}

function judge(
  element: PushElement,
  variable: VariableFacts,
  target: string,
  discards: Discards,
): WriteReading[] {
  const zone = ianaZone(variable.sourceZoneId) ?? "UTC";
  const batchTags = element.tags === undefined ? null : JSON.stringify(element.tags);
  const readings: WriteReading[] = [];
  for (const { date, value, version: own, tags } of element.data) {
    const at = readInstant(date, zone, READING_RULE);
    if (at.kind === "refused") {
      discards.add(target, at.reason, 1, date);
    } else if (!Number.isFinite(value)) {
      discards.add(target, "the value is beyond the range of a number", 1);
    } else {
      const version = own || element.version || null;
      // "A VersionTag … is copied into the data point's tags" (Data versioning, 1).
      const all = version === null ? tags : { ...tags, version };
      readings.push({
        atMs: at.ms,
        value,
        version,
        tags: all === undefined ? null : JSON.stringify(all),
        batchTags,
      });
    }
  }
  return readings;
}
