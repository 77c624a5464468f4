/** The records of a mapping: the state that it leads to, and the words of its events. */

import type { MappedRecord, RunPassage } from "../../ledger/ledger.ts";
import { conflictWords, cutWords, type MappedFile, type MapResult } from "../../mapping/contract.ts";
import type { Run } from "../../model.ts";
import { counted } from "../../support/grouped-number.ts";
import { columnWords, placeWords } from "../../support/place-words.ts";

/** Reasons for refused rows that an event names. */
const REASONS_SAID = 3;

/** The state that a run passes to by its mapping, with its record. */
export function outcomeOf(
  run: Run,
  result: MapResult,
): { readonly passage: RunPassage; readonly mapped?: MappedRecord } {
  if (result.status === "failed") {
    const { rejectedByReason } = result;
    const change = {
      reason: rejectedByReason === undefined ? result.reason : { ...result.reason, rejectedByReason },
      rejected: result.rejected,
      points: { rejected: result.rejectedCount },
      detail: `${placeWords(result.reason.place)}${result.reason.message}${refusedWords(result)}`,
    };
    return { passage: { to: "quarantined", change } };
  }
  if (result.batches.length > 0) return { passage: { to: "mapped" }, mapped: mappedRecord(result) };
  const message =
    run.replay !== null && result.targets.length > 0
      ? "nothing is left to deliver: every reading was delivered later, or accepted before"
      : "the file holds no readings";
  return { passage: { to: "empty", change: { reason: { code: "HG-RUN-003", message }, detail: message } } };
}

/** As the ledger takes it. */
function mappedRecord(result: MappedFile): MappedRecord {
  return {
    batches: result.batches,
    points: result.points,
    rejected: result.rejected,
    rejectedCount: result.rejectedCount,
    targets: result.targets.map(({ kind, target }) => ({ kind, target })),
    detail: mappedWords(result),
  };
}

/** The mapper, the trigger and the tables that a run is mapped with. */
export function mapperWords(run: Run): string {
  const { mapper, trigger, lookups = [], zones } = run.binding;
  const tables = lookups.map(({ name, digest }) => `, lookup ${name} (${digest?.slice(0, 12) ?? "unreadable"})`);
  const known = typeof zones === "string" ? `, zones of the sources (${zones.slice(0, 12)})` : "";
  const version = `${mapper.version} (${mapper.digest.slice(0, 12)})`;
  return `mapper ${mapper.name} ${version}, trigger ${trigger}${tables.join("")}${known}`;
}

function mappedWords(result: MappedFile): string {
  const period = result.period === null ? "" : `, ${result.period.from} to ${result.period.to}`;
  const { conflicts, cutDate } = result;
  const cut = cutDate === undefined ? "" : `; ${cutWords(cutDate)}`;
  const repeated = result.superseded - (conflicts?.count ?? 0);
  const superseded = `${repeated === 0 ? "" : `, ${counted(repeated, "superseded row")}`}${replacedWords(conflicts)}`;
  const batches = counted(result.batches.length, "batch", "batches");
  const counts = `${counted(result.points, "point")} of ${counted(result.targets.length, "target")} in ${batches}`;
  return `${counts}${period}${superseded}${refusedWords(result)}${cut}`;
}

/** Rows with another value than one that counts instead, the first of them in full. */
function replacedWords(conflicts: MappedFile["conflicts"]): string {
  if (conflicts === undefined) return "";
  const { count, shown } = conflicts;
  const said = shown.slice(0, REASONS_SAID).map(conflictWords).join("; ");
  const more = count > REASONS_SAID ? " …" : "";
  return `, ${counted(count, "row")} replaced by others of their date with another value: ${said}${more}`;
}

/** The most frequent reasons why rows were refused, with their counts. */
function refusedWords({ rejectedCount, rejectedByReason = [] }: MapResult): string {
  if (rejectedByReason.length === 0) return "";
  const reasons = rejectedByReason
    .slice(0, REASONS_SAID)
    .map(
      ({ message, column, count }) => `${count} × ${message}${column === undefined ? "" : ` (${columnWords(column)})`}`,
    );
  const more = rejectedByReason.length - reasons.length;
  return `; ${rejectedCount} refused: ${reasons.join(", ")}${more > 0 ? ` and ${more} more reasons` : ""}`;
}
