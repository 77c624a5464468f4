/**
 * Numbers in text with declared marks. Nothing is guessed: `1.234` is never read as a thousand unless the group mark
 * says so.
 */

import type { NumberOptions } from "./mapper.ts";
import { FileError, RowError } from "./readers/row-error.ts";
import { shown } from "./targets.ts";

const PLAIN = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const DECIMALS: ReadonlySet<string> = new Set([".", ","]);
/** The typographic minus, which word processors and web pages write instead of the hyphen. */
const MINUS = /^\u2212/;
const patterns = new Map<string, RegExp>();

/** Finite number of a text. Throws a `RowError` that names the fault. */
export function readNumber(text: string, options?: NumberOptions): number {
  if (typeof text === "number" && Number.isFinite(text)) return text;
  if (typeof text !== "string")
    throw new RowError("the number is missing", {
      hint: "The column is not in the file, or the row is too short.",
    });
  const decimal = options?.decimal ?? ".";
  const group = options?.group;
  // Most numbers need no trimming, and `trim` would cost as much as reading them.
  if (decimal === "." && group === undefined && PLAIN.test(text)) return finite(Number(text), text);
  const trimmed = text.trim().replace(MINUS, "-");
  if (decimal === "." && group === undefined) {
    if (PLAIN.test(trimmed)) return finite(Number(trimmed), text);
    throw refusal(text, trimmed, decimal, group);
  }
  if (!patternOf(decimal, group).test(trimmed)) throw refusal(text, trimmed, decimal, group);
  const ungrouped = group === undefined ? trimmed : trimmed.replaceAll(groupMarks(group), "");
  return finite(Number(decimal === "," ? ungrouped.replace(",", ".") : ungrouped), text);
}

function groupMarks(group: string): RegExp {
  // Typographic blanks (no-break, narrow no-break, thin) count as the blank that groups digits.
  return group === " " ? /[ \u00a0\u202f\u2009]/g : group === "'" ? /['’]/g : new RegExp(RegExp.escape(group), "g");
}

function patternOf(decimal: string, group: string | undefined): RegExp {
  const key = `${decimal}${group ?? ""}`;
  let pattern = patterns.get(key);
  if (pattern === undefined) {
    if (!DECIMALS.has(decimal) || decimal === group)
      throw new FileError(
        `the decimal mark "${decimal}" ${decimal === group ? "cannot be the group mark too" : "is none"}`,
        { hint: 'Declare `decimal` as "." or ",", and as `group` another mark or none.' },
      );
    const mark = RegExp.escape(decimal);
    // No number begins with a zero before a group: `0.250` is a decimal that the declared marks do not fit.
    const grouped = group === undefined ? "" : `[1-9]\\d{0,2}(?:${groupMarks(group).source}\\d{3})+(?:${mark}\\d*)?|`;
    pattern = new RegExp(`^[+-]?(?:${grouped}\\d+(?:${mark}\\d*)?|${mark}\\d+)(?:[eE][+-]?\\d+)?$`);
    patterns.set(key, pattern);
  }
  return pattern;
}

function finite(value: number, text: string): number {
  if (!Number.isFinite(value)) throw new RowError(`${shown(text)} is too large for a number`, { text });
  return value;
}

function refusal(text: string, trimmed: string, decimal: string, group: string | undefined): RowError {
  if (trimmed === "") return new RowError("the number is empty", { text });
  const marks = `decimal mark "${decimal}"${group === undefined ? " and no group mark" : `, group mark "${group}"`}`;
  const other = decimal === "." ? "," : ".";
  if (trimmed.endsWith("%"))
    return new RowError(`${shown(trimmed)} is not a number`, {
      text,
      hint:
        "A percent sign is not read, since it may mean the number or its hundredth: the mapper has to " +
        "remove it, and to divide where that is meant.",
    });
  const hint = !/^[+-]?[\d.,'’ _\u00a0\u202f\u2009]+$/.test(trimmed)
    ? `Expected digits with ${marks}.`
    : isGrouped(trimmed, decimal, other)
      ? `Its digits look grouped, which was not declared so (${marks}): write it without group marks, ` +
        `or have the mapper declare the mark as \`group\`.`
      : `Its marks differ from what was declared (${marks}); is the decimal mark "${other}"?`;
  return new RowError(`${shown(trimmed)} is not a number`, { text, hint });
}

/**
 * Whether marks between digits can only be group marks: blanks and similar, or the other mark before the decimal one.
 */
function isGrouped(trimmed: string, decimal: string, other: string): boolean {
  if (/['’ _\u00a0\u202f\u2009]/.test(trimmed)) return true;
  const first = trimmed.indexOf(other);
  return first !== -1 && first < trimmed.lastIndexOf(decimal);
}
