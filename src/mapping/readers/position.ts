/** The place of a fault in the text of a file. */
import { UnreadableError } from "./row-error.ts";

/** Line and column that the decoder has reached. */
export class Position {
  line = 1;
  /** Characters of the line so far. */
  characters = 0;

  pass(text: string): void {
    let start = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", start)) {
      this.line += 1;
      this.characters = 0;
      start = at + 1;
    }
    this.characters += text.length - start;
  }

  passBytes(bytes: Buffer): void {
    let start = 0;
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, start)) {
      this.line += 1;
      this.characters = 0;
      start = at + 1;
    }
    // In UTF-8 each character has exactly one byte that is not a continuation byte.
    for (let at = start; at < bytes.length; at += 1) if (((bytes[at] ?? 0) & 0xc0) !== 0x80) this.characters += 1;
  }

  fault(what: string, hint: string): UnreadableError {
    const column = this.characters + 1;
    return new UnreadableError(`line ${this.line}, character ${column}: ${what}`, {
      row: this.line,
      column: `character ${column}`,
      hint,
    });
  }
}
