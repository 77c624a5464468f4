/**
 * Facts from the name of a file and from the lines before its header, for templates; and what header and lines name
 * themselves, for comparison with the settings.
 */
import { type CellValue, FileError, type MapContext, RowError, SOURCE_ZONE, z } from "headgate/mapper";
import { isWritten, zoneName } from "./dates.ts";
import { type DayColumns, dayColumns } from "./day-rows.ts";
import { valueColumns } from "./rows.ts";
import { formatsOf, type Layout } from "./settings.ts";
import { bindTemplate, type Scope } from "./template.ts";
import type { Counts } from "./values.ts";

/** Named groups of the pattern in the name of the file, and the name itself as `file`. */
export function fileFacts(name: string, pattern: string | undefined): Map<string, string> {
  const facts = new Map([["file", name]]);
  if (pattern === undefined) return facts;
  // A Mac writes letters and accents apart.
  const match = new RegExp(pattern.normalize("NFC"), "u").exec(name.normalize("NFC"));
  if (match === null)
    throw new FileError(`the name of the file "${name}" does not fit the pattern ${pattern}`, {
      text: name,
      hint: "Correct the setting `fileName`, or have another trigger claim this file.",
    });
  return withGroups(facts, match);
}

/** Named groups of each pattern in the first line that it fits. */
export function preambleFacts(lines: readonly string[], patterns: readonly string[] | undefined): Map<string, string> {
  const facts = new Map<string, string>();
  for (const pattern of patterns ?? []) {
    const expression = new RegExp(pattern, "u");
    const match = lines.map((line) => expression.exec(line)).find((found) => found !== null);
    if (match === undefined || match === null)
      throw new FileError(`no line before the header fits the pattern ${pattern}`, {
        ...(lines[0] === undefined ? {} : { text: lines[0] }),
        hint:
          `There ${lines.length === 1 ? "is 1 line" : `are ${lines.length} lines`} before the header, ` +
          `as \`headerAt\` or the lines to skip say.`,
      });
    withGroups(facts, match);
  }
  return facts;
}

function withGroups(facts: Map<string, string>, match: RegExpExecArray): Map<string, string> {
  for (const [name, text] of Object.entries(match.groups ?? {})) {
    if (text !== undefined) facts.set(name, text.trim());
  }
  return facts;
}

/** The counts of values that the settings leave out, so that no omission is silent. */
export function noteCounts({ finding }: Pick<MapContext<unknown>, "finding">, { missing, dropped }: Counts): void {
  if (missing > 0) finding({ kind: "missing", message: "cells stand for no value, as `missing` says", count: missing });
  if (dropped > 0) finding({ kind: "status", message: "readings were dropped by their status", count: dropped });
}

export const namedShape = {
  named: z
    .enum(["check", "ignore"])
    .default("check")
    .describe(
      "Units and zones that the header or lines before it name, such as `Temp [°F]`, `Time (UTC)` and `Time zone: " +
        "UTC+1`: `check` refuses a file in which they are others than `unit` and `timeZone`; with `ignore` what is " +
        "set counts.",
    ),
};

type Unit = MapContext<unknown>["unit"];

interface Named {
  /** Lines before the header. */
  readonly before: readonly string[];
  /** The first row of the data. */
  readonly row: readonly (CellValue | undefined)[];
  /** The columns of a day. */
  readonly columnsOf?: DayColumns;
}

/** Throws a `FileError` where header or preamble name another unit or zone than is set. */
export function checkNamed(
  unit: Unit,
  layout: Layout & { readonly named: "check" | "ignore" },
  scope: Scope,
  { before: lines, row, columnsOf }: Named,
): void {
  if (layout.named === "ignore") return;
  const set = setUnits(layout, scope, columnsOf);
  for (const { name, text } of set) refuseUnit(unit, unitIn(unit, name), text, `the column ${name}`, name);
  const texts = new Set(set.map(({ text }) => text));
  const [only] = texts;
  if (texts.size === 1 && only !== undefined)
    for (const line of lines) refuseUnit(unit, UNIT_LINE.exec(line)?.[1], only, `the line "${line.trim()}"`, line);
  checkZone(layout, scope, lines, row);
}

/** Columns of values with the unit that is set for all their rows, unless a factor makes it another one. */
function setUnits(
  layout: Layout,
  scope: Scope,
  columnsOf: DayColumns | undefined,
): readonly { readonly name: string; readonly text: string }[] {
  const columns =
    layout.day === undefined
      ? valueColumns(layout, scope)
      : (columnsOf ?? dayColumns(layout.day, scope))(0).map(({ at }) => ({ at, settings: layout, inner: scope }));
  return columns.flatMap(({ at, settings: { unit, scale }, inner }) => {
    const text = unit === undefined || scale !== undefined ? undefined : bindTemplate(unit, inner).constant;
    return text === undefined || text === "" ? [] : [{ name: scope.columns.name(at), text }];
  });
}

const UNIT_LINE =
  /^[\s"#]*(?:units?|einheit|unité|unite|eenheid|unidad|unità)\s*"?\s*[:;,=\t]\s*"?([^\s";,]+)"?[\s;,]*$/i;
const IN_BRACKETS = /[[(]\s*(?:in |en )?([^\])]+?)\s*[\])]/g;
/** Symbols that mean nothing else in a name. */
const PLAIN_SYMBOL = /^(?:[kMG]?Wh|[kMG]?varh|[kMG]VAh|[kMG]W|[kM]var|[kM]VA|°[CF]|[Nn]?m³|W\/m[2²])$/;
/** Units that are words or marks of other things: (A), (min), (in). */
const UNCLEAR = /^(?:[A-VX-Za-z]|min|max|in|out|no|avg)$/i;

/** The one unit that the name of a column names. */
function unitIn(unit: Unit, name: string): string | undefined {
  const bracketed = [...name.matchAll(IN_BRACKETS)].flatMap(([, text = ""]) => (UNCLEAR.test(text) ? [] : [text]));
  const words = name
    .replaceAll(IN_BRACKETS, " ")
    .split(/[\s_]+/)
    .filter((word) => PLAIN_SYMBOL.test(word));
  const found = new Set([...bracketed.filter((text) => isUnit(unit, text)), ...words]);
  return found.size === 1 ? [...found][0] : undefined;
}

/** Whether it is a known unit, and none of time. */
function isUnit(unit: Unit, text: string): boolean {
  return converted(unit, 1, text, text) !== undefined && converted(unit, 1, text, "s") === undefined;
}

function converted(unit: Unit, value: number, from: string, to: string): number | undefined {
  try {
    return unit(value, from, to);
  } catch (thrown) {
    if (thrown instanceof RowError) return undefined;
    throw thrown;
  }
}

function refuseUnit(unit: Unit, named: string | undefined, set: string, where: string, text: string): void {
  if (named === undefined || !isUnit(unit, named) || !isUnit(unit, set)) return;
  if (converted(unit, 1, named, set) === 1 && converted(unit, 0, named, set) === 0) return;
  throw new FileError(`${where} names the unit ${named}, and \`unit\` is ${set}`, {
    text,
    hint: `Set \`unit: ${named}\` (\`convertTo\` converts it); if the file is wrong, set \`named: ignore\`.`,
  });
}

const OFFSET = /\b(?:UTC|GMT)(?:\s?[+-]\d{1,2}(?::?\d\d)?)?(?![\w/+-])/g;
const PLACE = /\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)\/[A-Za-z_/-]+/g;
const ZONE_LINE = /time ?zone|zeitzone|fuseau|tijdzone|zona horaria|fuso orario|all times|times (?:are )?in\b/i;
const DESIGNATOR = /\d[Tt ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$/;
/** Between them every zone of today with daylight saving has two offsets. */
const SEASONS = ["2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"];

function checkZone(
  { date, timeZone }: Layout,
  scope: Scope,
  before: readonly string[],
  row: readonly (CellValue | undefined)[],
): void {
  const set = timeZone === undefined ? undefined : zoneName(bindTemplate(timeZone, scope).constant);
  if (set === undefined || set === SOURCE_ZONE || !formatsOf(date).every(isWritten)) return;
  const places = date.text === undefined ? (date.columns ?? [date.column ?? 1]).map(scope.columns.find) : [];
  // A date with an offset needs no zone.
  if (places.some((at) => DESIGNATOR.test(String(row[at] ?? "").trim()))) return;
  const names = scope.columns.width === undefined ? [] : places.map(scope.columns.name);
  for (const text of [...names, ...before.filter((line) => ZONE_LINE.test(line))]) {
    const named = zoneIn(text);
    if (named === undefined || SEASONS.every((at) => isSameOffset(at, named, set))) continue;
    throw new FileError(`"${text.trim()}" names the time zone ${named}, and \`timeZone\` is ${set}`, {
      text,
      hint: `Set \`timeZone: "${named}"\`, if that is the zone of the dates; else set \`named: ignore\`.`,
    });
  }
}

/** The one zone that the text names. */
function zoneIn(text: string): string | undefined {
  const offsets = [...text.matchAll(OFFSET)].map(([found]) => found.replace(/^GMT$/, "UTC").replaceAll(/\s/g, ""));
  const found = new Set([...offsets, ...[...text.matchAll(PLACE)].map(([place]) => place)]);
  return found.size === 1 && !/local|lokal|locale/i.test(text) ? zoneName([...found][0]) : undefined;
}

/** Zones that are not known are refused elsewhere. */
function isSameOffset(at: string, one: string, other: string): boolean {
  try {
    const [first, second] = [one, other].map((zone) => Temporal.Instant.from(at).toZonedDateTimeISO(zone).offset);
    return first === second;
  } catch (thrown) {
    if (thrown instanceof RangeError) return true;
    throw thrown;
  }
}

interface Head {
  /** Rows of names; empty where columns go by number. */
  readonly header: readonly (readonly string[])[];
  /** Lines before the rows that may name columns, such as comments. */
  readonly before: readonly string[];
  readonly facts: ReadonlyMap<string, string>;
}

type FilteredSettings = Readonly<Record<string, unknown>> & { readonly preamble?: readonly string[] | undefined };

/** Fewest names that make a line a header. */
const NAMES_MIN = 2;

/**
 * Lines behind the header that are left out. One that would give later rows another meaning refuses the file: a header
 * with other columns, or a line of a pattern of `preamble` with other texts than those that were used.
 */
export class LaterLines {
  readonly #header: readonly (readonly string[])[];
  readonly #before: readonly (readonly string[])[];
  readonly #facts: ReadonlyMap<string, string>;
  readonly #patterns: readonly RegExp[];
  readonly #settings: string;

  constructor(settings: FilteredSettings, { header, before, facts }: Head) {
    this.#header = header.map(wordsOf);
    this.#before = before.map(namesIn);
    this.#facts = facts;
    this.#patterns = (settings.preamble ?? []).map((one) => new RegExp(one, "u"));
    this.#settings = JSON.stringify({ ...settings, preamble: undefined });
  }

  /** Throws a `FileError`. `by` is the setting that leaves the line out. */
  check(text: string, cells: readonly string[], by: "skipRows" | "comment", row?: number): void {
    const words = wordsOf(cells);
    const isRepeated = this.#header.some((names) => isEqual(names, words));
    const names = namesIn(text);
    const other = isRepeated
      ? undefined
      : (this.#header.find((known) => isOtherHeader(known, words)) ??
        this.#before.find((known) => isMixed(known, names)));
    const place = row === undefined ? { text } : { text, row };
    if (other !== undefined)
      throw new FileError(
        `the line "${text}", which \`${by}\` leaves out, names other columns than "${other.join(", ")}" before`,
        { ...place, hint: SEVERAL_TABLES },
      );
    for (const pattern of this.#patterns) this.#checkFacts(pattern.exec(text)?.groups ?? {}, text, by, place);
  }

  #checkFacts(groups: Readonly<Record<string, string>>, text: string, by: string, place: object): void {
    for (const [name, found] of Object.entries(groups)) {
      const known = this.#facts.get(name);
      if (found === undefined || known === undefined || known === found.trim()) continue;
      if (!new RegExp(`\\{\\s*${name}\\s*[}|]`, "u").test(this.#settings)) continue;
      throw new FileError(
        `the line "${text}", which \`${by}\` leaves out, has "${found.trim()}" as {${name}}, where "${known}" came ` +
          "before",
        { ...place, hint: SEVERAL_TABLES },
      );
    }
  }
}

const SEVERAL_TABLES =
  "The file holds several tables, and the rows behind this line would be read as those before it. Have the sender " +
  "write a file for each, or map it by a mapper of its own.";

/** Texts of cells without their quotes, up to the last that is not empty. */
function wordsOf(cells: readonly string[]): readonly string[] {
  const words = cells.map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  return words.slice(0, words.findLastIndex((word) => word !== "") + 1);
}

/** Words of a line that have a letter. */
function namesIn(text: string): readonly string[] {
  return text.split(/[^\p{L}\p{N}_]+/u).filter((word) => /\p{L}/u.test(word));
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((word, at) => word === other[at]);
}

/** The same names in another order. */
function isMixed(known: readonly string[], names: readonly string[]): boolean {
  return known.length >= NAMES_MIN && !isEqual(known, names) && isEqual([...known].sort(), [...names].sort());
}

/** A header with at least half of the names, of which one is elsewhere, or another one stands in its place. */
function isOtherHeader(known: readonly string[], words: readonly string[]): boolean {
  // Numbers as names are in totals too.
  const names = new Set(known.filter((name) => /\p{L}/u.test(name)));
  const shared = names.intersection(new Set(words)).size;
  return shared >= Math.max(NAMES_MIN, names.size / 2) && !isEqual(known, words);
}
