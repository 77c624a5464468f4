/** Numbers of text with declared marks. Nothing is guessed: `1.234` is never taken for a thousand unless the group mark says so. */
import type { NumberOptions } from "./mapper.ts";
import { RowError } from "./row-error.ts";

const PLAIN = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const patterns = new Map<string, RegExp>();

/** Finite number of a text. Throws a `RowError` that says what is wrong. */
export function readNumber(text: string, options?: NumberOptions): number {
  if (typeof text === "number" && Number.isFinite(text)) return text;
  if (typeof text !== "string")
    throw new RowError("the number is missing", {
      hint: "The column is not in the file, or the row is too short.",
    });
  const trimmed = text.trim();
  const decimal = options?.decimal ?? ".";
  const group = options?.group;
  if (decimal === "." && group === undefined) {
    if (PLAIN.test(trimmed)) return finite(Number(trimmed), text);
    throw refusal(text, trimmed, decimal, group);
  }
  if (!patternOf(decimal, group).test(trimmed)) throw refusal(text, trimmed, decimal, group);
  const ungrouped = group === undefined ? trimmed : trimmed.replaceAll(groupMarks(group), "");
  return finite(Number(decimal === "," ? ungrouped.replace(",", ".") : ungrouped), text);
}

function groupMarks(group: string): RegExp {
  // Typographic blanks (no-break, narrow no-break, thin) stand for the blank that groups digits.
  return group === " "
    ? /[ \u00a0\u202f\u2009]/g
    : group === "'"
      ? /['’]/g
      : new RegExp(RegExp.escape(group), "g");
}

function patternOf(decimal: string, group: string | undefined): RegExp {
  const key = `${decimal}${group ?? ""}`;
  let pattern = patterns.get(key);
  if (pattern === undefined) {
    const mark = RegExp.escape(decimal);
    // No number begins with a zero before a group: `0.250` is a decimal that the declared marks do not fit.
    const grouped =
      group === undefined ? "" : `[1-9]\\d{0,2}(?:${groupMarks(group).source}\\d{3})+(?:${mark}\\d*)?|`;
    pattern = new RegExp(`^[+-]?(?:${grouped}\\d+(?:${mark}\\d*)?|${mark}\\d+)(?:[eE][+-]?\\d+)?$`);
    patterns.set(key, pattern);
  }
  return pattern;
}

function finite(value: number, text: string): number {
  if (!Number.isFinite(value)) throw new RowError(`"${text}" is too large for a number`, { text });
  return value;
}

function refusal(text: string, trimmed: string, decimal: string, group: string | undefined): RowError {
  if (trimmed === "") return new RowError("the number is empty", { text });
  const shown = trimmed.length > 60 ? `${trimmed.slice(0, 60)}…` : trimmed;
  const marks = `decimal mark "${decimal}"${group === undefined ? " and no group mark" : `, group mark "${group}"`}`;
  const other = decimal === "." ? "," : ".";
  const hint = /^[+-]?[\d.,' _]+$/.test(trimmed)
    ? `Its marks differ from what was declared (${marks}); is the decimal mark "${other}"?`
    : `Expected digits with ${marks}.`;
  return new RowError(`"${shown}" is no number`, { text, hint });
}
