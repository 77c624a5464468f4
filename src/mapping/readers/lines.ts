/** Lines of a text file, ended by LF, CRLF or CR. */

import type { Line, LineOptions, MapperFile } from "./contract.ts";
import { type Input, utf8Chunks } from "./decode.ts";
import { LINE_CHARACTERS_MAX, TEXT_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { stampPlace } from "./row-place.ts";

export async function* lineChunks(input: Input, options: LineOptions = {}): AsyncGenerator<Line[]> {
  const longest = options.lineCharactersMax ?? LINE_CHARACTERS_MAX;
  let row = 0;
  let rest: string[] = [];
  let restCharacters = 0;
  let afterReturn = false;
  const lineOf = (text: string): Line => stamped({ row: row + 1, text });
  const stamped = (line: Line): Line => {
    row += 1;
    stampPlace(line, row);
    return line;
  };
  for await (const chunk of utf8Chunks(input, options.encoding)) {
    // A CR at the end may be the first half of a CRLF: the line ends there, and an LF that follows belongs to
    // it.
    let text = chunk.toString("utf8");
    if (afterReturn && text.startsWith("\n")) text = text.slice(1);
    if (text === "") continue;
    afterReturn = text.endsWith("\r");
    const parts = text.split(/\r\n|\n|\r/);
    const last = parts.pop() ?? "";
    const [first] = parts;
    if (first !== undefined) {
      parts[0] = rest.join("") + first;
      rest = [];
      restCharacters = 0;
    }
    const long = parts.findIndex((part) => part.length > longest);
    if (long !== -1) throw tooLong(row + long + 1, longest);
    rest.push(last);
    restCharacters += last.length;
    if (restCharacters > longest) throw tooLong(row + parts.length + 1, longest);
    if (parts.length > 0) yield parts.map(lineOf);
  }
  if (restCharacters > 0) yield [stamped({ row: row + 1, text: rest.join(""), isOpen: true })];
}

function tooLong(row: number, longest: number): UnreadableError {
  return new UnreadableError(`line ${row} is longer than ${longest} characters`, {
    row,
    hint: "Is it a text file of lines? A mapper for longer lines raises `lineCharactersMax`.",
  });
}

export async function wholeText(
  input: Input,
  options: NonNullable<Parameters<MapperFile["text"]>[0]>,
): Promise<string> {
  const bytesMax = options.bytesMax ?? TEXT_BYTES_MAX;
  const parts: string[] = [];
  let bytes = 0;
  for await (const chunk of utf8Chunks(input, options.encoding)) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw new UnreadableError(`the file is larger than the ${bytesMax} bytes that can be read as one text`, {
        hint:
          "A mapper for large files reads them by `lines`, `csv`, `json`, `xml` or `bytes`, " + "or raises `bytesMax`.",
      });
    parts.push(chunk.toString("utf8"));
  }
  return parts.join("");
}
