/** Filters rows without data: legends, totals, and everything after the data. */
import { z } from "headgate/mapper";
import { pattern } from "./settings-text.ts";
import type { Cells } from "./template.ts";

export const filterShape = {
  skipRows: z
    .array(pattern)
    .optional()
    .describe("Regular expressions; rows that fit one of them as a line are left out."),
  endAt: pattern
    .optional()
    .describe("Regular expression; from the first row on that fits it as a line, nothing is read."),
};

interface Filters {
  readonly skipRows?: readonly string[] | undefined;
  readonly endAt?: string | undefined;
}

/** Why a row is left out: it fits `skipRows`, or comes after the data. */
export type LeftOut = "skipped" | "ended" | undefined;

/** Whether a row is left out; undefined when the settings filter no rows. */
export function rowFilter({ skipRows, endAt }: Filters, delimiter: string): ((cells: Cells) => LeftOut) | undefined {
  if (skipRows === undefined && endAt === undefined) return undefined;
  const skipped = (skipRows ?? []).map((one) => new RegExp(one, "u"));
  const end = endAt === undefined ? undefined : new RegExp(endAt, "u");
  let ended = false;
  return (cells) => {
    if (ended) return "ended";
    const line = lineOf(cells, delimiter);
    ended = end?.test(line) === true;
    if (ended) return "ended";
    return skipped.some((one) => one.test(line)) ? "skipped" : undefined;
  };
}

/** A row as a line of text. */
export function lineOf(cells: Cells, delimiter: string): string {
  return cells.map((cell) => (typeof cell === "object" ? (cell?.local ?? "") : String(cell))).join(delimiter);
}
