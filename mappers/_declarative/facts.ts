/** Facts from the name of a file and from the lines before its header, for templates. */
import { FileError, type MapContext } from "headgate/mapper";
import type { Counts } from "./values.ts";

/** Named groups of the pattern in the name of the file, and the name itself as `file`. */
export function fileFacts(name: string, pattern: string | undefined): Map<string, string> {
  const facts = new Map([["file", name]]);
  if (pattern === undefined) return facts;
  const match = new RegExp(pattern, "u").exec(name);
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
