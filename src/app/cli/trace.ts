/** `headgate trace`: the history of a file, found by operationId, run, file name or path. */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { systemClock } from "#core/clock.ts";
import { ConfigError, invalidOption, RejectedError, wordsOf } from "#core/errors.ts";
import { nameForms } from "#core/file-names.ts";
import { foundWords, grouped, placeWords } from "#core/text.ts";
import { traceIdOf } from "#core/trace-context.ts";
import { type GatewayConfig, isInsideHub, requireResolved } from "#gateway/config.ts";
import { instantMs, type TracedReading, targetFields, traceReadings } from "#gateway/console/reading-origin.ts";
import type { ForgottenFile, Ledger, TracedFile } from "#gateway/ledger/ledger.ts";
import { ledgerWords } from "#gateway/ledger/open.ts";
import type { Batch, RejectedRow, Run } from "#gateway/model.ts";
import { batchStory, eventStory, type StoryEvent } from "#gateway/operations/batch-story.ts";
import { currentPlace } from "#gateway/operations/run-actions.ts";
import type { ReadingQuery } from "#gateway/spool/target-index.ts";
import type { HubOptions } from "#hub/options.ts";
import { byAttention, findingWords } from "#mapping/contract.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { targetWords } from "#wire/target.ts";
import type { ServiceOperation } from "#wire/webhook.ts";
import type { CommandFrame } from "./command.ts";
import { limitOption, openLedgerToRead, searchLedgers } from "./ledger/ledger-view.ts";
import { loadOperated, operatedConfigOption } from "./operated-config.ts";
import {
  noteCut,
  print,
  printConcern,
  printError,
  printJson,
  printTable,
  reasonLines,
  shownState,
  sizeWords,
  styled,
  targetLines,
  withReadableTime,
} from "./output.ts";

interface TraceOptions {
  readonly config: string;
  readonly target?: string;
  readonly date?: string;
  readonly json?: boolean;
  readonly service?: boolean;
  readonly limit: string;
  readonly all?: boolean;
}

/** For all operations together: a service that is away must not hold the trace up. */
const ASK_MS = 5_000;

const ROWS_SHOWN = 10;
const AFTER_WIDTH = 10;

export function addTrace({ command, action }: CommandFrame): void {
  command("trace", [
    "headgate trace meters_2026-03.csv -c gateway.yaml      # by file name, path, run or operationId",
    "headgate trace 1284 -c hub.yaml                        # by the id of a stored file",
    "headgate trace 01kag3v0s9c7yq5d2e8fxh4m1n-3 -c gateway.yaml",
    "headgate trace --target 'sourceSerialNumber=M-1 mappingConfig=kWh' --date 2026-03-01T00:00:00Z -c gateway.yaml",
  ])
    .addOption(operatedConfigOption())
    .option("--target <fields>", "target of a stored reading, as `trace` and `map --summary` write it, or as JSON")
    .option("--date <instant>", "date of that reading, ISO 8601 with Z or an offset")
    .option("--no-service", "do not ask the service what became of the operations")
    .option("-n, --limit <count>", "how many files, the newest first", "50")
    .option("--all", "all batches with their events and all refused rows, instead of those that failed or differ")
    .option("--json", "as JSON, with all of them")
    .action(action((id: string | undefined, options: TraceOptions) => traceAny(id, options)));
}

async function traceAny(id: string | undefined, options: TraceOptions): Promise<number> {
  const { target, date } = options;
  if (id !== undefined && target === undefined && date === undefined) return await trace(id, options);
  if (id === undefined && target !== undefined && date !== undefined) return await traceReading(target, date, options);
  throw new ConfigError("HG-CLI-001", {
    operation: "trace",
    subject: id ?? "",
    message: "name either one id, or --target and --date",
    hint: "`headgate trace --help` shows examples.",
  });
}

/** Migrations have their own ledgers, whose files are found in the same way. */
async function trace(id: string, options: TraceOptions): Promise<number> {
  const { config, hub } = await loadOperated(options.config);
  const files: TracedFile[] = [];
  const forgotten: ForgottenFile[] = [];
  let [looked, all] = [0, 0];
  const limit = limitOption(options.limit);
  await searchLedgers(config, async ({ ledger, drops }) => {
    looked += 1;
    const found = await findFiles(id, ledger, { drops }, limit);
    files.push(...found.files);
    all += found.total;
    forgotten.push(...(await ledger.forgottenFiles(id)));
  });
  // Its error explains that there is no ledger.
  if (looked === 0) await (await openLedgerToRead(options.config)).ledger.close();
  if (files.length === 0 && forgotten.length === 0) {
    const others = looked > 1 ? " and in those of its migrations" : "";
    printError(
      new RejectedError("HG-CLI-002", {
        operation: "trace",
        subject: id,
        message: `nothing in the ledger ${ledgerWords(config.ledger)}${others} has this name`,
      }),
    );
    return 1;
  }
  const senders = await sendersOf(hub, files);
  if (options.json === true) {
    const found = files.map((file) => ({
      ...{ ...file, currentPlace: currentPlace(file.arrival, file.events) },
      sender: senders.get(file.arrival.id),
    }));
    printJson([...found, ...forgotten.map((one) => ({ forgotten: one }))]);
    noteCut(files.length, all, "files", `\`--limit ${all}\` shows all`, true);
    return 0;
  }
  const isAll = options.all === true;
  const side = options.service === false ? null : await serviceSide(config, files, isAll);
  for (const file of files) printFile(file, senders.get(file.arrival.id), side, isAll);
  for (const file of forgotten) print(`${styled("yellow", "forgotten")}  ${forgottenWords(file)}`);
  noteCut(files.length, all, "files", `\`--limit ${all}\` shows all`);
  return 0;
}

/** The path of the ledger, or else a path into the folder of a local drop, or the id of a stored file of a hub. */
export async function findFiles(
  id: string,
  ledger: Ledger,
  config: Pick<GatewayConfig, "drops">,
  limit: number,
): Promise<{ readonly files: readonly TracedFile[]; readonly total: number }> {
  const trace = async (query: string) => {
    const files = await ledger.trace(query, limit);
    return { files, total: files.length < limit ? files.length : await ledger.countTraced(query) };
  };
  const traced = await trace(id);
  if (traced.total > 0) return traced;
  // Each file of a hub's storage has a folder of its own there.
  if (/^\d+$/.test(id) && isInsideHub(config)) return await trace(`${id}/`);
  for (const drop of config.drops) {
    if (drop.kind !== "local") continue;
    const inside = relative(drop.path, resolve(id));
    if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) continue;
    const { files, total } = await trace(inside.split(sep).join("/"));
    const here = files.filter(({ arrival }) => arrival.drop === drop.name);
    if (here.length > 0) return { files: here, total: total - (files.length - here.length) };
  }
  return { files: [], total: 0 };
}

function forgottenWords({ at, drop, path, by, why, runs, acceptedPoints }: ForgottenFile): string {
  const reason = why === "" ? "" : `: ${why}`;
  const ids = runs.length === 0 ? "" : ` (${runs.join(", ")})`;
  return `${path} at ${drop}, ${at} by ${by}${reason}; ${runs.length} runs${ids}, ${acceptedPoints} points accepted`;
}

function printFile(
  { arrival, runs, events }: TracedFile,
  sender: string | undefined,
  side: ServiceSide | null,
  isAll: boolean,
): void {
  print(styled("bold", arrival.path));
  const forms = nameForms(arrival.path);
  if (forms !== null) print(`  ${forms}`);
  fact("drop", `${arrival.drop}${arrival.goneAt === null ? "" : `, no longer there since ${arrival.goneAt}`}`);
  fact("size", `${sizeWords(arrival.size)} (${arrival.size} bytes)`);
  if (arrival.sha256 !== null) fact("sha256", arrival.sha256);
  if (sender !== undefined) fact("sender", sender);
  fact("state", `${arrival.state}: ${arrival.reason}`);
  const place = currentPlace(arrival, events);
  const isArchived = events.some(({ what, detail }) => what === "source.archived" && detail.endsWith(` → ${place}`));
  const where = place === arrival.path ? "at its drop" : isArchived ? `archived as ${place}` : place;
  fact("file now", arrival.parentId === null ? where : `in its container, ${containerPath(arrival.path)}`);
  for (const one of runs) {
    printRun(one.run, one.batches, one.rejected, isAll);
    if (side !== null) printServiceSide(one.run, one.batches, side);
  }
  print("");
  printHistory(isAll ? events : eventStory(events, runs));
  print("");
}

/** The time of each event, and the time since the event before. */
function printHistory(events: readonly StoryEvent[]): void {
  const first = events[0];
  const last = events.at(-1);
  if (first === undefined || last === undefined) return;
  print(`${styled("bold", "  life")}, ${durationWords(msBetween(first, last))} from the first to the last`);
  let before = first;
  for (const event of events) {
    const after = `+${durationWords(msBetween(before, event))}`.padStart(AFTER_WIDTH);
    print(
      `    ${styled("dim", event.at)} ${styled("dim", after)}  ${event.what.padEnd(20)} ` +
        `${withReadableTime(event.detail)}${foldedWords(event)}`,
    );
    before = event;
  }
}

/** ` (2,298 of these, the last …-2300 at 2026-…)` */
function foldedWords({ folded }: StoryEvent): string {
  if (folded === undefined) return "";
  const { count, lastOperationId, lastAt } = folded;
  return ` (${grouped(count)} of these, the last ${lastOperationId} at ${lastAt}; --all shows each)`;
}

function msBetween(from: StoryEvent, to: StoryEvent): number {
  return Date.parse(to.at) - Date.parse(from.at);
}

/** `0.012 s`, `14.5 s`, `3 m 20 s`, `2 h 5 m`, `3 d 4 h`. */
function durationWords(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  const sign = ms < 0 ? "-" : "";
  if (seconds < 10) return `${sign}${seconds.toFixed(3)} s`;
  if (seconds < 60) return `${sign}${seconds.toFixed(1)} s`;
  const parts = (large: number, small: number, names: string) =>
    `${sign}${Math.floor(seconds / large)} ${names[0]} ${Math.floor((seconds % large) / small)} ${names[1]}`;
  if (seconds < 3_600) return parts(60, 1, "ms");
  return seconds < 86_400 ? parts(3_600, 60, "hm") : parts(86_400, 3_600, "dh");
}

function printRun(run: Run, batches: readonly Batch[], rejected: readonly RejectedRow[], isAll: boolean): void {
  const { trigger, service, mapper, rows, lookups = [], sender } = run.binding;
  print("");
  print(`  ${styled("bold", `run ${run.id}`)}  ${shownState(run)}`);
  if (run.reason !== null) {
    const { message, place, code } = run.reason;
    fact("reason", `${placeWords(place)}${message}${foundWords(message, place)} [${code}]`);
    if (run.reason.hint !== undefined) fact("what to do", run.reason.hint);
  }
  if (run.replay?.continues !== undefined) fact("continues", `run ${run.replay.of}: ${run.replay.why ?? ""}`);
  else if (run.replay !== null)
    fact(
      "replay of",
      `run ${run.replay.of}, requested by ${run.replay.by}` +
        `${run.replay.rejectedOnly ? ", only what was not accepted" : ""}` +
        `${run.replay.overwrite ? ", overwriting" : ""}${run.replay.why === undefined ? "" : `: ${run.replay.why}`}`,
    );
  fact("trigger", `${trigger}, rows ${rows}`);
  fact("mapper", `${mapper.name} ${mapper.version} (${mapper.digest.slice(0, 12)})`);
  for (const { name, path, digest } of lookups)
    fact("lookup", `${name}, ${path} (${digest?.slice(0, 12) ?? "could not be read"})`);
  fact("service", service);
  if (sender !== undefined) fact("sender", sender);
  if (run.node !== null) fact("node", run.node);
  fact("trace id", traceIdOf(run.id));
  const { points } = run;
  fact(
    "points",
    `${points.mapped} mapped, ${points.accepted} accepted, ${points.stored} stored, ${points.rejected} ` +
      `rejected, ${points.discarded} discarded`,
  );
  for (const one of byAttention(run.findings)) fact(one.attention ? "attention" : "found", findingWords(one));
  for (const line of reasonLines(run.reason?.rejectedByReason ?? [])) fact("refused", line);
  for (const line of targetLines(run.reason?.targets ?? [])) fact("target", line);
  for (const { message, place } of isAll ? rejected : rejected.slice(0, ROWS_SHOWN))
    fact("rejected", `${placeWords(place)}${message}${foundWords(message, place)}`);
  if (rejected.length > ROWS_SHOWN && !isAll) fact("", `… and ${rejected.length - ROWS_SHOWN} more (--all)`);
  if (batches.length > 0) printBatches(batches, isAll);
}

function printBatches(batches: readonly Batch[], isAll: boolean): void {
  const { shown, folded } = isAll ? { shown: batches, folded: null } : batchStory(batches);
  print("");
  printTable(["    operation", "state", "points", "bytes", "sends", "answer", "outcome"], shown.map(batchRow));
  if (folded === null || folded.batches === 0) return;
  const like = folded.odd === 0 ? "like most" : `${grouped(folded.odd)} of them not like most`;
  const points = `${grouped(folded.points)} points`;
  print(`    … and ${grouped(folded.batches)} more with ${points}, ${like} (--all shows each)`);
}

function printServiceSide({ binding }: Run, batches: readonly Batch[], { known, faults }: ServiceSide): void {
  for (const { operationId } of batches) {
    const operation = known.get(operationId);
    if (operation !== undefined) fact("at service", `${operationId} ${serviceWords(operation)}`);
  }
  const fault = faults.get(binding.service);
  if (fault !== undefined && batches.length > 0) fact("at service", `not known: ${fault}`);
}

function batchRow(batch: Batch): string[] {
  const { outcome } = batch;
  const stored = outcome === null ? "" : `${outcome.stored} of ${outcome.received} stored (${outcome.by})`;
  return [
    `    ${batch.operationId}`,
    batch.state,
    String(batch.points),
    String(batch.length),
    String(batch.attempts),
    batch.answer ?? "",
    stored,
  ];
}

function containerPath(entryPath: string): string {
  return entryPath.slice(0, entryPath.lastIndexOf("!/"));
}

function fact(name: string, value: string): void {
  print(`    ${styled("dim", name.padEnd(11))} ${value}`);
}

// The senders of traced files that no run of them names: of unclaimed ones and of containers, at a hub.

/** By the ids of their arrivals. */
async function sendersOf(hub: HubOptions | null, files: readonly TracedFile[]): Promise<ReadonlyMap<number, string>> {
  const senders = new Map<number, string>();
  if (hub === null) return senders;
  const { storedSenders } = await import("../platform/stored-files.ts");
  const unknown = files.filter(({ runs }) => runs.every(({ run }) => run.binding.sender === undefined));
  for (const [drop, own] of Map.groupBy(unknown, ({ arrival }) => arrival.drop)) {
    const known = await storedSenders(
      hub,
      drop,
      own.map(({ arrival }) => arrival.path),
    );
    for (const { arrival } of own) {
      const sender = known.get(arrival.path);
      if (sender !== undefined) senders.set(arrival.id, sender);
    }
  }
  return senders;
}

// The records that services keep of the operations of a file (`GET /operations/{id}` of a hub).

interface ServiceSide {
  /** By operation ids. */
  readonly known: ReadonlyMap<string, ServiceOperation>;
  /** The reasons why services could not be asked, by their names. */
  readonly faults: ReadonlyMap<string, string>;
}

/**
 * Asks the services about the batches that a trace shows, or about all. Operations that the service reports nothing
 * about are left out.
 */
async function serviceSide(config: GatewayConfig, files: readonly TracedFile[], isAll: boolean): Promise<ServiceSide> {
  const known = new Map<string, ServiceOperation>();
  const faults = new Map<string, string>();
  // The gateway inside a hub has no password, and its ledger has the hub's outcomes.
  if (isInsideHub(config)) return { known, faults };
  const signal = AbortSignal.timeout(ASK_MS);
  const runs = files.flatMap((file) => file.runs);
  for (const access of config.services) {
    const ids = runs
      .filter(({ run }) => run.binding.service === access.name)
      .flatMap(({ batches }) => (isAll ? batches : batchStory(batches).shown))
      .flatMap(({ operationId, attempts }) => (attempts > 0 ? [operationId] : []));
    if (ids.length === 0) continue;
    const { timeouts } = config.push;
    try {
      requireResolved(config, "services");
    } catch (thrown) {
      faults.set(access.name, wordsOf(thrown));
      continue;
    }
    const client = new ServiceClient(access, { connections: 1, timeouts, clock: systemClock });
    try {
      for (const id of ids) {
        const operation = await client.getOperation(id, signal);
        if (operation !== null) known.set(id, operation);
      }
    } catch (thrown) {
      // The trace is then as the ledger has it.
      faults.set(access.name, wordsOf(thrown));
    } finally {
      await client.close();
    }
  }
  return { known, faults };
}

/** `stored: 3 stored (1 replaced), 0 discarded; file 12, a.csv` */
function serviceWords({ status, stored, replaced, discarded, file }: ServiceOperation): string {
  const count = (discarded ?? []).reduce((sum, one) => sum + one.count, 0);
  const points = stored === undefined ? "" : `: ${stored} stored (${replaced ?? 0} replaced), ${count} discarded`;
  const source = file === undefined ? "" : `; file ${file.id}${file.fileName === null ? "" : `, ${file.fileName}`}`;
  return `${status}${points}${source}`;
}

/** `headgate trace --target … --date …`: finds the file, sheet and row of a stored reading. */
async function traceReading(
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
