/** Writes the report of a migration: at its end, and again at each request. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isoInstant, systemClock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, unlessMissing } from "#core/errors.ts";
import { grouped, noun } from "#core/text.ts";
import { openLedger } from "../../ledger/open.ts";
import type { RunState } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { type Finding, isInDelivered } from "../plan/findings.ts";
import { type MigrationRequest, migrationFolder, migrationLedger } from "../request.ts";
import { type RecordedCreation, StructureRecord } from "../structure/record.ts";
import { pastUndos, runningUndo, type Undone } from "../undo/record.ts";
import { settleUndo } from "../undo/state.ts";
import type { Reconciliation } from "./reconciliation.ts";
import {
  type CoverageRow,
  deliveredFiles,
  type MigrationReport,
  makeReport,
  type ReportedFile,
  type ReportLedger,
} from "./report.ts";

export interface KnownMigration {
  readonly id: string;
  readonly order: MigrationRequest;
  readonly folder: string;
  /** The limits of its latest start, as they were given; absent before the first. */
  readonly limits?: MigrationLimits;
}

/** As the options of `migrate` have them. */
export interface MigrationLimits {
  readonly between?: string;
  readonly rate?: string;
  readonly concurrency?: string;
  readonly pauseOnErrors?: string;
  readonly verify?: boolean;
  /** Path of the table or the template of structure that is missing. */
  readonly provision?: string;
}

export interface WrittenReport {
  /** `undone`: earlier deliveries that were undone. */
  readonly report: MigrationReport & { readonly undone: readonly Undone[] };
  readonly page: string;
}

/** The style sheet of the report page. */
const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dee6;
  --paper: #fff; --good: #1a7f4b; --bad: #b42318; --deep: #0b4f8a; --faint: #eef2f6; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #9aa7b5; --line: #333d49;
  --paper: #151a20; --good: #4cc38a; --bad: #ff8a7a; --deep: #6cb2f0; --faint: #1f262e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 1.5rem 1rem 3rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
.totals { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
.totals div { flex: 1 1 6.5rem; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
  .totals span { white-space: nowrap; } .totals b { display: block; font-size: 1.35rem; font-variant-numeric:
  tabular-nums; }
.wide { overflow-x: auto; } svg { display: block; width: 100%; height: auto; } svg.line { height: 11rem;
  overflow: visible; } svg.key { display: inline-block; width: 4.5rem; height: .75rem; margin: 0 .3rem; } .edge
  { text-align: right; } .ends { display: flex; justify-content: space-between; gap: 1rem; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .3rem
  .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; } th { color: var(--soft);
  font-weight: 600; white-space: nowrap; } td.number, th.number { text-align: right; font-variant-numeric:
  tabular-nums; white-space: nowrap; } td { overflow-wrap: anywhere; } td.month { white-space: nowrap; }
  td.number + td:not(.number) { padding-left: .5rem; }
li { overflow-wrap: anywhere; }
details { margin-top: .5rem; } summary { cursor: pointer; }
.map { display: grid; grid-template-columns: minmax(6rem, 16rem) 1fr; gap: 4px .6rem; align-items: center;
  font-size: .8rem; line-height: 1.2; } .map span { overflow-wrap: anywhere; } .map .ends { grid-column: 2;
  font-size: 1em; } .map svg { height: 14px; }
@media (max-width: 600px) {
  .totals { display: grid; grid-template-columns: 1fr 1fr; } .totals div:last-child:nth-child(odd) {
    grid-column: 1 / -1; }
  .map { grid-template-columns: minmax(0, 1fr); } .map .ends { grid-column: 1; } .map > span { margin-top:
    .3rem; } td, th { padding-right: .4rem; }
  .stack, .stack tbody { display: block; } .stack tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding:
    .4rem 0; border-bottom: 1px solid var(--line); } .stack tr:has(th) { display: none; }
  .stack tr td { padding: 0; border: 0; } .stack td.whole { flex-basis: 100%; } .stack td[data-name]::before {
    content: attr(data-name) " "; color: var(--soft); }
}
@media print { body { max-width: none; padding: 0; font-size: 11px; } details::details-content {
  content-visibility: visible; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
`;

const FILES_SHOWN = 2_000;
const DIFFERENCES_SHOWN = 500;
const WIDTH = 1000;
const HEIGHT = 180;
const SHADES = 5;
const FINDINGS_SHOWN = 200;
const CREATED_SHOWN = 1_000;
const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/**
 * Writes `report.html` and `report.json` into the folder of the migration. `reconciliation` null: the former one
 * stays, and so do the patterns without a file (`empty`), which nothing was listed for.
 */
export async function writeReport(
  { id, order, folder }: KnownMigration,
  ledger: ReportLedger,
  reconciliation: Reconciliation | null,
  empty: readonly string[] | null,
): Promise<WrittenReport> {
  const data = join(folder, "report.json");
  const madeAt = isoInstant(systemClock.now());
  const earlier = await earlierFacts(data);
  const compared = {
    ...(reconciliation === null ? earlier : { reconciliation, reconciledAt: madeAt }),
    empty: empty ?? earlier.empty,
  };
  const { patterns, mapper } = order;
  const running = await runningUndo(folder);
  const undone = [...(await pastUndos(folder)), ...(running === null ? [] : [running])];
  const facts = { id, patterns, mapper, madeAt, ...compared };
  const made = await makeReport(facts, ledger, join(folder, "spool"));
  const report = { ...made, undone, ...(await structureOf(folder)) };
  const page = join(folder, "report.html");
  await writeDurably(data, JSON.stringify(report));
  await writeDurably(page, reportPage(report));
  return { report, page };
}

/** Empty when it created nothing. */
async function structureOf(folder: string): Promise<Pick<MigrationReport, "structure">> {
  const structure = (await StructureRecord.open(folder, systemClock)).report();
  return structure.created.length + structure.differences.length === 0 ? {} : { structure };
}

async function earlierFacts(path: string) {
  if (!existsSync(path)) return { reconciliation: null, reconciledAt: null, empty: [] };
  const { reconciliation, reconciledAt, empty } = JSON.parse(await readFile(path, "utf8")) as MigrationReport;
  return { reconciliation, reconciledAt, empty };
}

export async function remakeReport(spool: string, id: string): Promise<WrittenReport> {
  const known = await findMigration(spool, id);
  await settleUndo(known.folder);
  const place = migrationLedger(known.folder);
  const undone = await pastUndos(known.folder);
  const last = undone.at(-1)?.folder ?? null;
  // Nothing was delivered since: the former report is current.
  if (!existsSync(place.path) && last !== null) {
    const report = JSON.parse(await readFile(join(last, "report.json"), "utf8")) as MigrationReport;
    const whole = { ...report, undone, ...(await structureOf(known.folder)) };
    const page = join(last, "report.html");
    await writeDurably(page, reportPage(whole));
    return { report: whole, page };
  }
  const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
  try {
    return await writeReport(known, ledger, null, null);
  } finally {
    await ledger.close();
  }
}

/** By the beginning of its id. */
export async function findMigration(spool: string, id: string): Promise<KnownMigration> {
  const found = (await knownMigrations(spool)).filter((one) => one.id.startsWith(id));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw new ConfigError("HG-MIGR-003", {
    operation: "find migration",
    subject: id,
    message:
      found.length === 0
        ? `there is no migration ${id} in ${migrationFolder(spool, "")}`
        : `${id} is the beginning of ${found.map((one) => one.id).join(" and ")}`,
  });
}

export async function knownMigrations(spool: string): Promise<readonly KnownMigration[]> {
  const names = await unlessMissing(readdir(migrationFolder(spool, "")), []);
  const known: KnownMigration[] = [];
  for (const name of names.sort()) {
    const folder = migrationFolder(spool, name);
    const path = join(folder, "migration.json");
    if (!existsSync(path)) continue;
    const { id, order, limits } = JSON.parse(await readFile(path, "utf8")) as KnownMigration;
    known.push({ id, order, folder, ...(limits === undefined ? {} : { limits }) });
  }
  return known;
}

/** The report as one self-contained HTML page: it can be mailed, printed and kept. */
export function reportPage(report: MigrationReport): string {
  const parts = [
    heading(report),
    undone(report),
    totals(report),
    findings(report),
    neededFiles(report),
    reconciliation(report),
    timeline(report),
    coverage(report),
    refusals(report),
    structure(report),
    files(report),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Migration ${text(report.id)}</title><style>${STYLE}</style></head>
<body>${parts.join("\n")}</body></html>
`;
}

function heading({ id, patterns, mapper, madeAt, startedAt, endedAt }: MigrationReport): string {
  const took = startedAt === null || endedAt === null ? "" : `, delivered from ${time(startedAt)} to ${time(endedAt)}`;
  return `<h1>Migration ${text(id)}</h1>
<p>${patterns.map((pattern) => `<code>${text(pattern)}</code>`).join(" ")} by
  ${mapper === null ? "the configured triggers" : `the mapper <code>${text(mapper)}</code>`}</p>
<p class="soft">Report of ${time(madeAt)}${took}. Times are in UTC.</p>`;
}

/** The parts of this and of earlier deliveries that were undone. */
function undone({ undone: all = [], endedAt }: MigrationReport): string {
  return all
    .map((one, at) => {
      const isThis = at === all.length - 1 && (endedAt === null || endedAt <= one.begunAt);
      const versions = one.versions === 0 ? "" : ` with ${grouped(one.versions)} versions`;
      const points = `${grouped(one.points)} ${noun(one.points, "point")}${versions}`;
      const removed = `${points} ${noun(one.points, "was", "were")} removed from the service`;
      if (one.endedAt === null)
        return `<p class="bad"><b>Being undone.</b> ${text(one.by)} began to undo this migration at
          ${time(one.begunAt)} UTC, and it has not finished: ${removed} so far.</p>`;
      const when = `at ${time(one.endedAt)} UTC by ${text(one.by)}: ${removed}.`;
      return isThis
        ? `<p class="bad"><b>Undone</b> ${when} Below is what was delivered before.</p>`
        : `<p class="soft">An earlier delivery was undone ${when}</p>`;
    })
    .join("");
}

function totals(report: MigrationReport): string {
  const { files, points, coverage, reconciliation, findings: odd } = report;
  const delivered = deliveredFiles(report);
  const others = files.filter(({ reason, state }) => reason !== null && !isGood(state)).length;
  const cells: (readonly [string, string, string])[] = [
    ["files", grouped(files.length), ""],
    ["delivered", grouped(delivered), delivered === files.length ? "good" : ""],
    ["need a person", grouped(others), others === 0 ? "" : "bad"],
    ["points mapped", grouped(points.mapped), ""],
    ["points accepted", grouped(points.accepted), points.accepted === points.mapped ? "good" : "bad"],
    ["operations", grouped(files.reduce((sum, { operations }) => sum + operations, 0)), ""],
    ["targets", grouped(coverage?.targets ?? 0), ""],
  ];
  if (reconciliation !== null) {
    const { length } = reconciliation.differences;
    cells.push(["differences", grouped(length), length > 0 ? "bad" : odd.length === 0 ? "good" : ""]);
  }
  if (odd.length > 0) cells.push(["findings", grouped(odd.length), "bad"]);
  const totals = cells.map(
    ([name, value, tone]) => `<div><b class="${tone}">${value}</b><span class="soft">${name}</span></div>`,
  );
  return `<div class="totals">${totals.join("")}</div>`;
}

function timeline({ timeline: steps }: MigrationReport): string {
  const [first, last] = [steps[0], steps.at(-1)];
  const title = "<h2>Points accepted over time</h2>";
  if (first === undefined || last === undefined) return `${title}<p>No point was accepted yet.</p>`;
  if (first === last)
    return `${title}<p>${grouped(last.points)} ${noun(last.points, "point")} at once: ${time(last.at)}.</p>`;
  const [fromMs, toMs] = [Date.parse(first.at), Date.parse(last.at)];
  const x = (at: string) => Math.round(((Date.parse(at) - fromMs) / Math.max(1, toMs - fromMs)) * WIDTH);
  const y = (points: number) => Math.round(HEIGHT - (points / last.points) * HEIGHT);
  const line = steps.map(({ at, points }) => `${x(at)},${y(points)}`).join(" ");
  return `${title}
<p class="soft edge">${grouped(last.points)} ${noun(last.points, "point")}</p>
<svg class="line" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
  aria-label="Points accepted over time">
<polygon points="0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}" fill="var(--deep)" opacity=".15"/><polyline
  points="${line}" fill="none" stroke="var(--deep)" stroke-width="2" vector-effect="non-scaling-stroke"/>
<line x1="0" x2="${WIDTH}" y1="${HEIGHT}" y2="${HEIGHT}" stroke="var(--line)"/></svg><p
  class="soft ends"><span>${time(first.at)}</span><span>${time(last.at)}</span></p>`;
}

function coverage({ coverage: map }: MigrationReport): string {
  if (map === null) return "<h2>Coverage by target</h2><p>No reading was mapped yet.</p>";
  const most = Math.max(1, ...map.rows.flatMap(({ cells }) => cells));
  const rest = map.targets > map.rows.length ? ` The first ${map.rows.length} of ${grouped(map.targets)} targets.` : "";
  const days = map.cellDays === 1 ? "One day" : `${map.cellDays} days`;
  return `<h2>Coverage by target</h2>
<p class="soft">${days} a cell; no reading ${key()} ${grouped(most)} readings.${rest}</p>
<div class="map">${map.rows.map((row) => heatRow(row, most)).join("")}<p
  class="soft ends"><span>${map.from}</span><span>${lastDay(map)}</span></p></div>`;
}

/** The last day of the last cell. */
function lastDay({ from, cells, cellDays }: NonNullable<MigrationReport["coverage"]>): string {
  return Temporal.PlainDate.from(from)
    .add({ days: cells * cellDays - 1 })
    .toString();
}

function key(): string {
  const shades = Array.from({ length: SHADES }, (_, at) => (at + 1) / SHADES);
  const marks = shades.map((shade, at) => `<rect x="${at + 1}" width="1" height="1" opacity="${shade}"/>`);
  return `<svg class="key" viewBox="0 0 ${SHADES + 1} 1" preserveAspectRatio="none" role="img"
    aria-label="the more readings, the stronger the colour"><rect width="${SHADES + 1}" height="1"
    fill="var(--faint)"/><g fill="var(--deep)">${marks.join("")}</g></svg>`;
}

function heatRow({ target, points, from, to, cells }: CoverageRow, most: number): string {
  const title = text(`${target}: ${grouped(points)} ${noun(points, "reading")}, ${from} to ${to}`);
  let marks = "";
  for (let at = 0; at < cells.length; ) {
    const shade = shadeOf(cells[at] ?? 0, most);
    let end = at + 1;
    while (end < cells.length && shadeOf(cells[end] ?? 0, most) === shade) end += 1;
    if (shade > 0) marks += `<rect x="${at}" width="${end - at}" height="10" opacity="${shade}"/>`;
    at = end;
  }
  return `<span title="${title}">${text(target)}</span><svg viewBox="0 0 ${cells.length} 10"
    preserveAspectRatio="none" role="img" aria-label="${title}"><rect width="${cells.length}" height="10"
    fill="var(--faint)"/><g fill="var(--deep)">${marks}</g></svg>`;
}

function shadeOf(points: number, most: number): number {
  return points === 0 ? 0 : Math.max(1, Math.ceil((points / most) * SHADES)) / SHADES;
}

/** Findings about the files: the service may store exactly their content, and the content may be wrong. */
function findings({ findings: all }: MigrationReport): string {
  if (all.length === 0) return "";
  const rows = all.slice(0, FINDINGS_SHOWN).map(findingItem);
  const people = all.filter(({ needsPerson }) => needsPerson).length;
  const first = people === 0 ? "" : ` The first ${grouped(people)} ${noun(people, "needs", "need")} a person.`;
  const items = `<ul>${rows.join("")}</ul>${more(all.length, FINDINGS_SHOWN)}`;
  return `<h2>Findings in the files</h2><p class="bad">${grouped(all.length)} ${noun(all.length, "cause")}, of which a
    person has to decide whether they are faults.${first}</p>${items}`;
}

function findingItem({ kind, words, count, places, needsPerson }: Finding): string {
  const others = places.slice(1).map((place) => `<li>${text(place)}</li>`);
  const hidden = count - places.length;
  const rest = hidden <= 0 ? "" : `<p class="soft">… and ${grouped(hidden)} more.</p>`;
  const list =
    others.length === 0 ? "" : `<details><summary>the others</summary><ul>${others.join("")}</ul>${rest}</details>`;
  return `<li${needsPerson ? ' class="bad"' : ""}>${kind}: ${text(words)}${list}</li>`;
}

function reconciliation(report: MigrationReport): string {
  const { reconciliation: found, reconciledAt, endedAt, findings: all } = report;
  const odd = all.filter(isInDelivered);
  if (found === null)
    return `<h2>Reconciliation</h2><p class="soft">The service was not asked what it stores
      (<code>--verify</code> does).</p>`;
  const { differences, points, targets, months, superseded, unknown } = found;
  const readings = `${grouped(points)} ${noun(points, "reading")} of ${grouped(targets)} ${noun(targets, "target")}`;
  const what = `${readings} ${noun(points, "was", "were")} compared with the service, by
    target and month (${grouped(months)}).`;
  const replaced = superseded === 0 ? "" : ` ${grouped(superseded)} rows were replaced by later ones of the same date.`;
  const later =
    reconciledAt === null || endedAt === null || endedAt <= reconciledAt
      ? ""
      : `<p class="bad">That was at ${time(reconciledAt)}. Readings were delivered since, and these were not
        compared (<code>--verify</code> does).</p>`;
  const lost =
    unknown.length === 0
      ? ""
      : `<p class="bad">Of ${unknown.length} runs nothing is known: their batches are no longer kept.</p>`;
  if (differences.length === 0 && odd.length > 0)
    return `<h2>Reconciliation</h2><p><b>Stored as the files say.</b> ${what}${replaced}</p><p class="bad">The
      files themselves have ${grouped(odd.length)} findings (above): a file in another time zone or a duplicate
      is stored without a difference.</p>${later}${lost}`;
  if (differences.length === 0)
    return `<h2>Reconciliation</h2><p><b class="good">No difference.</b> ${what}${replaced}</p>${later}${lost}`;
  const rows = differences.slice(0, DIFFERENCES_SHOWN).map(
    (one) =>
      `<tr><td class="whole"><code>${text(one.target)}</code></td><td
          class="month">${one.from.slice(0, 7)}</td><td class="number"
          data-name="mapped">${grouped(one.expected.count)}</td><td class="number"
          data-name="stored">${grouped(one.stored.count)}</td><td class="whole">${text(one.reason)}</td></tr>`,
  );
  return `<h2>Reconciliation</h2><p><b class="bad">${grouped(differences.length)} differences.</b>
    ${what}${replaced}</p>${later}${lost}
<div class="wide"><table class="stack"><tr><th>target</th><th>month</th><th class="number">mapped</th><th
  class="number">stored</th><th>likely
  reason</th></tr>${rows.join("")}</table></div>${more(differences.length, DIFFERENCES_SHOWN)}`;
}

function refusals({ refusals: all }: MigrationReport): string {
  if (all.length === 0) return "<h2>Refused rows by reason</h2><p>No row was refused.</p>";
  const rows = all.map(
    ({ reason, rows, files: among }) =>
      `<tr><td>${text(reason)}</td><td class="number">${grouped(rows)}</td><td
        class="number">${grouped(among)}</td></tr>`,
  );
  return `<h2>Refused rows by reason</h2><div class="wide"><table><tr><th>reason</th><th
    class="number">rows</th><th class="number">files</th></tr>${rows.join("")}</table></div>`;
}

function structure({ structure: found, id }: MigrationReport): string {
  if (found === undefined) return "";
  const { created, differences } = found;
  const rows = created.slice(0, CREATED_SHOWN).map(
    ({ entity, name, id: own, target, at, state, removed }) =>
      `<tr><td data-name="kind">${entity}</td><td class="whole">${text(name)}</td><td class="number"
          data-name="id">${own ?? "unknown"}</td><td class="whole">${text(target)}</td><td
          data-name="at">${time(at)}</td><td>${stateWords(state, removed)}</td></tr>`,
  );
  const left = differences.map(
    (one) =>
      `<li>${one.entity} ${text(one.name)} (id ${one.id}): ${text(one.field)} is ${text(one.there)}, and
        ${text(one.stated)} is stated for ${text(one.target)}</li>`,
  );
  const table =
    rows.length === 0
      ? "<p>Nothing was missing.</p>"
      : `<p class="soft"><code>headgate migrate undo ${text(id)} --structure</code> removes the parts that are
        not used otherwise.</p><div class="wide"><table class="stack"><tr><th>what</th><th>name</th><th
        class="number">id</th><th>for</th><th>created</th><th>state</th></tr>
        ${rows.join("")}</table></div>${more(created.length, CREATED_SHOWN)}`;
  const others = left.length === 0 ? "" : `<p class="bad">Existing, and left unchanged:</p><ul>${left.join("")}</ul>`;
  return `<h2>Structure that was created</h2>${table}${others}`;
}

function stateWords(state: RecordedCreation["state"], removed: RecordedCreation["removed"]): string {
  if (removed !== null) return `removed ${time(removed.at)} by ${text(removed.by)}`;
  return state === "begun" ? "not known yet: the next call searches for it" : "there";
}

function neededFiles({ files: all }: MigrationReport): string {
  const odd = all.filter(({ state }) => !isGood(state));
  return odd.length === 0 ? "" : `<h2>Files that need a person</h2>${fileTable(odd)}`;
}

function files({ files: all }: MigrationReport): string {
  const open = all.length <= 50 ? " open" : "";
  return `<h2>Files and their operations</h2><details${open}>
    <summary>${grouped(all.length)} files, with the beginnings of their operation ids</summary>${fileTable(all)}
    </details>`;
}

function fileTable(some: readonly ReportedFile[]): string {
  const rows = some.slice(0, FILES_SHOWN).map(fileRow);
  return `<div class="wide"><table class="stack"><tr><th>file</th><th>state</th><th class="number">points</th><th
      class="number">calls</th><th>operations</th></tr>${rows.join("")}</table></div>${more(some.length, FILES_SHOWN)}`;
}

function fileRow({ path, state, accepted, mapped, operations, run, reason }: ReportedFile): string {
  const points = accepted === mapped ? grouped(accepted) : `${grouped(accepted)} of ${grouped(mapped)}`;
  const why = reason === null || isGood(state) ? "" : `<br><span class="soft">${text(reason)}</span>`;
  return `<tr><td class="whole">${text(path)}${why}</td><td
    class="${isGood(state) ? "good" : "bad"}">${state}</td><td class="number"
    data-name="points">${points}</td><td class="number" data-name="calls">${operations}</td><td
    data-name="operations"><code>${run}-…</code></td></tr>`;
}

function isGood(state: RunState): boolean {
  return ["delivered", "empty"].includes(RUN_STATES[state].standing ?? "");
}

function more(length: number, shown: number): string {
  return length > shown
    ? `<p class="soft">… and ${grouped(length - shown)} more; the JSON beside this page has all.</p>`
    : "";
}

function time(iso: string): string {
  return text(iso.slice(0, 19).replace("T", " "));
}

function text(raw: string): string {
  return raw.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}
