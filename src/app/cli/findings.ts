/**
 * Formats findings of `headgate check` as lines of a terminal: level, part, subject and finding, each in its column.
 */
import { print, styled } from "./output.ts";

export interface Finding {
  /** `drop meters`, `service main`, `spool`, … */
  readonly part: string;
  readonly level: "ok" | "warning" | "failed";
  /** A word or two; absent where the part has only one subject. */
  readonly about?: string | undefined;
  readonly what: string;
  readonly hint?: string | undefined;
}

const COLOURS = { ok: "green", warning: "yellow", failed: "red" } as const;
const LEVEL_WIDTH = 7;
const PART_WIDTH_MAX = 28;
const ABOUT_WIDTH = 11;
const GAP = "  ";
/** Text narrower than this is not broken: it would become a column of words. */
const TEXT_WIDTH_MIN = 40;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** Prints findings as they come. `parts` are the expected ones, so that the column widths are known beforehand. */
export function findingPrinter(parts: readonly string[]): (finding: Finding) => void {
  const { isTTY, columns } = process.stdout;
  const widest = Math.min(PART_WIDTH_MAX, Math.max(0, ...parts.map((part) => part.length)));
  // On a terminal each part is printed once, above its findings; a pipe gets one line for each finding, so that it
  // can be searched.
  const layout = isTTY ? { partWidth: 0, width: columns } : { partWidth: widest, width: UNLIMITED };
  let part = "";
  return (finding) => {
    if (isTTY && finding.part !== part) print(styled("bold", finding.part));
    part = finding.part;
    for (const [at, line] of findingLines(finding, layout).entries())
      print(at === 0 ? line.replace(finding.level, styled(COLOURS[finding.level], finding.level)) : line);
  };
}

/** `partWidth` 0 leaves the part out. */
export function findingLines(
  { level, part, about = "", what, hint }: Finding,
  { partWidth, width }: { readonly partWidth: number; readonly width: number },
): readonly string[] {
  const columns = [
    level.padEnd(LEVEL_WIDTH),
    ...(partWidth === 0 ? [] : [part.padEnd(partWidth)]),
    about.padEnd(ABOUT_WIDTH),
    "",
  ];
  const head = (partWidth === 0 ? GAP : "") + columns.join(GAP);
  const indent = " ".repeat(head.length);
  const room = Math.max(TEXT_WIDTH_MIN, width - head.length);
  const [first = "", ...others] = broken(what, room);
  const hints = hint === undefined ? [] : broken(`→ ${hint}`, room);
  return [head + first, ...[...others, ...hints].map((line) => indent + line)];
}

/** Broken at spaces; a word that is too long for a line stays whole, so that it can be copied. */
function broken(text: string, room: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
