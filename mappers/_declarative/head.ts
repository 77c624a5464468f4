/** Reads the lines before the data of a text file. */
import { FileError, type MapperFile } from "headgate/mapper";
import { preambleFacts } from "./facts.ts";

export interface HeadSettings {
  readonly skipLines: number;
  readonly headerAt?: string | undefined;
  readonly preamble?: readonly string[] | undefined;
  readonly encoding: string;
}

export interface Head {
  /** Number of lines before the header. */
  readonly lines: number;
  readonly facts: ReadonlyMap<string, string>;
  /** The lines themselves. */
  readonly before: readonly string[];
}

/** Number of lines that are searched for the header. */
const HEAD_LINES_MAX = 1000;

/** Position of the header, and the content of the lines before it. */
export async function readHead(file: MapperFile, settings: HeadSettings): Promise<Head> {
  const { headerAt, skipLines, preamble, encoding } = settings;
  if (headerAt === undefined && preamble === undefined && skipLines === 0)
    return { lines: 0, facts: new Map(), before: [] };
  const before: string[] = [];
  let found = headerAt === undefined;
  reading: for await (const lines of file.lines({ encoding })) {
    for (const { text } of lines) {
      found ||= headerAt !== undefined && text.includes(headerAt);
      if (headerAt === undefined ? before.length >= skipLines : found) break reading;
      if (before.length >= HEAD_LINES_MAX) break reading;
      before.push(text);
    }
  }
  if (!found)
    throw new FileError(
      before.length === 0
        ? "the file is empty: it has no header"
        : `no line among the first ${before.length} holds the text "${headerAt}" of the header`,
      { ...(before[0] === undefined ? {} : { text: before[0] }) },
    );
  const lines = headerAt === undefined ? skipLines : before.length;
  return { lines, facts: preambleFacts(before, preamble), before };
}
