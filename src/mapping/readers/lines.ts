/** Lines of a text file, ended by LF, CRLF or CR. */
import type { Line } from "../mapper.ts";
import { stampPlace } from "../place.ts";
import { UnreadableError } from "../row-error.ts";
import { type Input, utf8Chunks } from "./decode.ts";

const LINE_CHARACTERS_MAX = 8 * 1024 * 1024;

/** `text` reads whole files into memory. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

export async function* lineChunks(input: Input, encoding?: string): AsyncGenerator<Line[]> {
  let row = 0;
  let rest = "";
  const lineOf = (text: string): Line => {
    row += 1;
    const line = { row, text };
    stampPlace(line, row);
    return line;
  };
  for await (const chunk of utf8Chunks(input, encoding)) {
    const text = rest + chunk.toString("utf8");
    // A CR at the end may be the first half of a CRLF.
    const open = text.endsWith("\r") ? text.length - 1 : text.length;
    const parts = text.slice(0, open).split(/\r\n|\n|\r/);
    rest = (parts.pop() ?? "") + text.slice(open);
    if (rest.length > LINE_CHARACTERS_MAX)
      throw new UnreadableError(
        `line ${row + parts.length + 1} is longer than ${LINE_CHARACTERS_MAX} characters`,
        {
          row: row + parts.length + 1,
        },
      );
    if (parts.length > 0) yield parts.map(lineOf);
  }
  if (rest !== "") yield [lineOf(rest.endsWith("\r") ? rest.slice(0, -1) : rest)];
}

export async function wholeText(input: Input, encoding?: string): Promise<string> {
  const parts: string[] = [];
  let bytes = 0;
  for await (const chunk of utf8Chunks(input, encoding)) {
    bytes += chunk.length;
    if (bytes > TEXT_BYTES_MAX)
      throw new UnreadableError(
        `the file is larger than the ${TEXT_BYTES_MAX} bytes that can be read as one text`,
        {
          hint: "A mapper for large files reads them by `lines`, `csv` or `bytes`.",
        },
      );
    parts.push(chunk.toString("utf8"));
  }
  return parts.join("");
}
