/** `headgate trace --target … --date …`: finds the file, sheet and row of a stored reading. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch } from "../model.ts";
import { type FoundReading, findReadings, type ReadingQuery } from "../spool/search.ts";
import { parsedJson } from "../support/decoded-text.ts";
import { RejectedError } from "../support/errors.ts";
import { invalidOption } from "../support/invalid-option.ts";
import { pushTarget, targetWords } from "../wire/index.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { print, printConcern, printError, printJson, printTable, styled } from "./output.ts";

/** A reading with the history of its file. */
interface TracedReading extends FoundReading {
  readonly drop: string;
  readonly path: string;
  readonly state: string;
  readonly operationId: string | null;
  readonly mapper: string;
}

const FOUND_MAX = 50;

export async function traceReading(
  target: string,
  date: string,
  options: { readonly config: string; readonly json?: boolean },
): Promise<number> {
  const query = { ...readTarget(target), atMs: readInstant(date) };
  const { ledger, config } = await openLedgerToRead(options.config);
  try {
    const found: TracedReading[] = [];
    for await (const reading of findReadings(config.spool.path, query, printConcern)) {
      found.push(...(await withHistory(reading, ledger)));
      if (found.length >= FOUND_MAX) break;
    }
    if (options.json === true) printJson(found);
    else if (found.length > 0) printFound(found, query, date);
    if (found.length > 0) return 0;
    printError(notFound(query, date, config));
    return 1;
  } finally {
    await ledger.close();
  }
}

async function withHistory(reading: FoundReading, ledger: Ledger): Promise<TracedReading[]> {
  const files = await ledger.trace(reading.runId);
  return files.flatMap(({ arrival, runs }) =>
    runs
      .filter(({ run }) => run.id === reading.runId)
      .map(({ run, batches }) => ({
        ...reading,
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

function printFound(found: readonly TracedReading[], { words }: ReadingQuery, date: string): void {
  print(styled("bold", `${words} at ${date}`));
  printTable(
    ["  value", "version", "drop", "file", "sheet", "row", "run", "operation"],
    found.map(({ value, version, drop, path, sheet, row, state, runId, operationId }) => [
      `  ${value}`,
      version ?? "",
      drop,
      path,
      sheet ?? "",
      row === null ? "?" : String(row),
      `${runId} (${state})`,
      operationId ?? "",
    ]),
  );
  if (found.length > 1)
    print("  The newest run is first; the service returns the latest reading, unless versions differ.");
}

function notFound({ words }: ReadingQuery, date: string, config: GatewayConfig): RejectedError {
  return new RejectedError("HG-CLI-002", {
    operation: "trace",
    subject: `${words} at ${date}`,
    message: "no reading of that target and date is in the spool",
    hint:
      `The spool ${config.spool.path} keeps rows as long as inputs (spool.keepInputs). Write the target as ` +
      `\`headgate map FILE --summary\` shows it.`,
  });
}

/** `sourceSerialNumber=M-1 mappingConfig=kWh`, or JSON. Values may hold blanks: a field begins at its name. */
function readTarget(text: string): Pick<ReadingQuery, "words" | "fields"> {
  const given = text.trim().startsWith("{") ? parsedJson(text) : readWords(text);
  if (given === undefined) throw invalidOption("--target", `${text} is not JSON`);
  const result = pushTarget.strict().safeParse(given);
  if (!result.success || Object.keys(result.data).length === 0)
    throw invalidOption("--target", `${text} names no target`);
  const fields = Object.fromEntries(
    Object.entries(result.data).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
  return { words: targetWords(result.data), fields };
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

function readInstant(text: string): number {
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw invalidOption("--date", `${text} is not an instant: write it as 2026-03-01T00:00:00Z or with an offset`);
  }
}
