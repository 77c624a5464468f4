/** The records of a mapping: the state that it leads to, and the words of its events. */

import { REGISTER } from "#core/register.ts";
import { columnWords, counted, placeWords } from "#core/text.ts";
import { byAttention, findingWords, type MappedFile, type MapResult } from "#mapping/contract.ts";
import type { Ledger, MappedRecord, RunPassage } from "../../ledger/ledger.ts";
import type { MappingFinding, Run } from "../../model.ts";

/** Reasons for refused rows, and findings, that an event names. */
const REASONS_SAID = 3;

/** Kinds of findings about rows and cells that were left out. */
const LEFT_OUT: readonly string[] = ["skipRows", "endAt", "missing", "status"];

/** The state that a run passes to by its mapping, with its record. */
export function outcomeOf(
  run: Run,
  result: MapResult,
): { readonly passage: RunPassage; readonly mapped?: MappedRecord } {
  if (result.status === "failed") {
    const { rejectedByReason, findings } = result;
    const change = {
      reason: rejectedByReason === undefined ? result.reason : { ...result.reason, rejectedByReason },
      rejected: result.rejected,
      findings,
      points: { rejected: result.rejectedCount },
      detail: `${placeWords(result.reason.place)}${result.reason.message}${refusedWords(result)}${foundWords(result)}`,
    };
    return { passage: { to: "quarantined", change } };
  }
  if (result.batches.length > 0) return { passage: { to: "mapped" }, mapped: mappedRecord(result) };
  const { findings } = result;
  const message =
    run.replay !== null && result.targets.length > 0
      ? "nothing is left to deliver: every reading was delivered later, or accepted before"
      : `the file holds no readings${foundWords(result)}`;
  const isLeftOut = result.targets.length === 0 && findings.some(({ kind }) => LEFT_OUT.includes(kind));
  if (!isLeftOut || run.binding.empty === "expected")
    return { passage: { to: "empty", change: { reason: { code: "HG-RUN-003", message }, findings, detail: message } } };
  const reason = { code: "HG-RUN-018", message, hint: REGISTER["HG-RUN-018"].hint };
  return { passage: { to: "emptied", change: { reason, findings, detail: message } } };
}

/** As the ledger takes it. */
function mappedRecord(result: MappedFile): MappedRecord {
  return {
    batches: result.batches,
    points: result.points,
    rejected: result.rejected,
    rejectedCount: result.rejectedCount,
    findings: result.findings,
    targets: result.targets.map(({ kind, target }) => ({ kind, target })),
    detail: mappedWords(result),
  };
}

/** Newest files of a trigger that show how its files end, and the least of them that show a habit. */
export const LINE_ENDS_READ = 20;
const LINE_ENDS_LEAST = 3;
export const LINE_END = "lineEnd";

/** Notes that the last line of the file has no line end: where those of earlier files had one, it may be cut off. */
export async function withLineEnd(run: Run, result: MapResult, ledger: Pick<Ledger, "acceptedFindings">) {
  if (result.status === "failed" || result.openLine === undefined) return result;
  const earlier = await ledger.acceptedFindings(run.binding.trigger, { limit: LINE_ENDS_READ, before: run.id });
  const isUsual =
    earlier.length < LINE_ENDS_LEAST || earlier.some((found) => found.some(({ kind }) => kind === LINE_END));
  const message = "the last line has no line end";
  const place = { text: result.openLine };
  const finding: MappingFinding = isUsual
    ? { kind: LINE_END, message, count: 1, first: place, last: place }
    : {
        ...{ kind: LINE_END, count: 1, first: place, last: place, attention: true },
        message: `${message}, and those of the files before have one: was the file cut off?`,
      };
  return { ...result, findings: [...result.findings, finding] };
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
  const batches = counted(result.batches.length, "batch", "batches");
  const counts = `${counted(result.points, "point")} of ${counted(result.targets.length, "target")} in ${batches}`;
  return `${counts}${period}${refusedWords(result)}${foundWords(result)}`;
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

/** The first findings, those that need attention before the others. */
function foundWords({ findings }: MapResult): string {
  if (findings.length === 0) return "";
  const said = byAttention(findings).slice(0, REASONS_SAID).map(findingWords).join(", ");
  const more = findings.length - REASONS_SAID;
  return `; ${said}${more > 0 ? ` and ${counted(more, "more finding")}` : ""}`;
}
