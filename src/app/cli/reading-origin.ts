/** `headgate trace --target … --date …`: finds the file, sheet and row of a stored reading. */

import { RejectedError } from "#core/errors.ts";
import { invalidOption } from "#core/invalid-option.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { instantMs, type TracedReading, targetFields, traceReadings } from "#gateway/console/reading-origin.ts";
import type { ReadingQuery } from "#gateway/spool/target-index.ts";
import { targetWords } from "#wire/target.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { print, printConcern, printError, printJson, printTable, styled } from "./output.ts";

export async function traceReading(
  target: string,
  date: string,
  options: { readonly config: string; readonly json?: boolean },
): Promise<number> {
  const query = { fields: readTarget(target), atMs: readInstant(date) };
  const { ledger, config } = await openLedgerToRead(options.config);
  try {
    const found = await traceReadings(config.spool.path, query, ledger, printConcern);
    if (options.json === true) printJson(found);
    else if (found.length > 0) printFound(found, query, date);
    if (found.length > 0) return 0;
    printError(notFound(query, date, config));
    return 1;
  } finally {
    await ledger.close();
  }
}

function printFound(found: readonly TracedReading[], { fields }: ReadingQuery, date: string): void {
  print(styled("bold", `${targetWords(fields)} at ${date}`));
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

function notFound({ fields }: ReadingQuery, date: string, config: GatewayConfig): RejectedError {
  return new RejectedError("HG-CLI-002", {
    operation: "trace",
    subject: `${targetWords(fields)} at ${date}`,
    message: "no reading of that target and date is in the spool",
    hint:
      `The spool ${config.spool.path} keeps rows as long as inputs (spool.keepInputs). Write the target as ` +
      `\`headgate map FILE --summary\` shows it.`,
  });
}

function readTarget(text: string): ReadingQuery["fields"] {
  const fields = targetFields(text);
  if (fields === null) throw invalidOption("--target", `${text} names no target`);
  return fields;
}

function readInstant(text: string): number {
  const ms = instantMs(text);
  if (ms === null)
    throw invalidOption("--date", `${text} is not an instant: write it as 2026-03-01T00:00:00Z or with an offset`);
  return ms;
}
