/** Reads the texts of sheets in chunks, directly and by the parser alone. */
import { PartParser } from "#mapping/readers/xlsx-part.ts";
import { PlainPart } from "#mapping/readers/xlsx-plain.ts";
import { PlainSheetRows, SheetHandler } from "#mapping/readers/xlsx-sheet.ts";
import { SharedStrings } from "#mapping/readers/xlsx-strings.ts";

export interface Cuts {
  /** Of the chunks, which repeat. */
  readonly lengths: readonly number[];
  /** Chunks end right after a `<`. */
  readonly isInTag: boolean;
}

export function chunksOf(given: string, { lengths, isInTag }: Cuts): string[] {
  const chunks: string[] = [];
  for (let from = 0; from < given.length; ) {
    const to = from + (lengths[chunks.length % lengths.length] ?? 1);
    const less = isInTag ? given.indexOf("<", to - 1) : to - 1;
    const end = less === -1 ? given.length : less + 1;
    chunks.push(given.slice(from, end));
    from = end;
  }
  return chunks;
}

export const strings = await SharedStrings.read(
  "strings",
  eachOf(["<sst><si><t>first</t></si><si><t></t></si></sst>"]),
);

export async function* eachOf(chunks: readonly string[]): AsyncGenerator<string> {
  yield* chunks;
}

/** The rows, and the fault that ended them. */
export function rowsOf(chunks: readonly string[], isDirect: boolean) {
  const dateFormat = (number: number) => (number === 1 ? "yyyy-mm-dd" : number === 2 ? "hh:mm:ss.000" : undefined);
  const handler = new SheetHandler("S", { strings, is1904: false, dateFormat });
  const parser = new PartParser("the sheet", handler);
  const reader = isDirect ? new PlainPart(parser, handler) : parser;
  try {
    for (const chunk of chunks) reader.write(chunk);
    reader.end();
    return { rows: handler.drain(), fault: undefined };
  } catch (thrown) {
    return { rows: [], fault: (thrown as Error).message };
  }
}

/** How many characters each direct read took. */
export function readsOf(run: () => void): readonly number[] {
  const reads: number[] = [];
  const { read } = PlainSheetRows.prototype;
  try {
    PlainSheetRows.prototype.read = function (given, from) {
      const to = read.call(this, given, from);
      reads.push(to - from);
      return to;
    };
    run();
  } finally {
    PlainSheetRows.prototype.read = read;
  }
  return reads;
}
