/** A pack (`layout.ts`) as a process of mappers fills it: the inputs are in it already, and all that comes of them is written behind them at once. */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { aboutOf, PACK_MAX, packEndText, type Span, trailerText } from "./layout.ts";
import { type BatchSink, rowIndexLine, SliceCounter } from "./writer.ts";

const HELD_FIRST = 512 * 1024;

/** The memory of one that was written is used again: new pages would cost more than the copy. */
let held: Buffer = Buffer.alloc(0);

export class PackWriter {
  readonly #path: string;
  readonly #inputs: Buffer;
  /** What is written behind the inputs, up to the length. */
  #bytes: Buffer;
  #length = 0;
  readonly #footers = new Map<string, number>();

  private constructor(path: string, inputs: Buffer) {
    this.#path = path;
    this.#inputs = inputs;
    this.#bytes = held;
  }

  /** Throws as the disk does. */
  static open(path: string): PackWriter {
    return new PackWriter(path, readFileSync(path));
  }

  input({ offset, length }: Span): Buffer {
    return this.#inputs.subarray(offset, offset + length);
  }

  /** For the batches of one run, until it is published or discarded; then comes the next. Throws when the pack grows too large. */
  sinkOf({ runId, input }: { readonly runId: string; readonly input: Span }): BatchSink {
    const begin = this.#length;
    const counter = new SliceCounter(this.#end);
    let rows = "";
    return {
      spillPath: `${this.#path}.spill.part`,
      append: async (body, sheetName) => {
        this.#hold(body.bytes.length + rows.length);
        const slice = counter.next(body);
        body.bytes.copy(this.#bytes, this.#length);
        this.#length += body.bytes.length;
        rows += `${rowIndexLine(slice, body, sheetName)}\n`;
        return slice;
      },
      publish: async (mapped) => {
        const about = this.#length === begin ? null : aboutOf(mapped);
        if (about === null) return;
        const { text, footerAt } = trailerText(this.#end, rows, about, { runId, input });
        this.#add(text);
        this.#footers.set(runId, footerAt);
      },
      discard: async () => {
        this.#length = begin;
      },
    };
  }

  /** Throws as the disk does. The file is not synced then. */
  write(): void {
    if (this.#footers.size === 0) return;
    this.#add(packEndText(this.#footers));
    const file = openSync(this.#path, "r+");
    try {
      for (let done = 0; done < this.#length; )
        done += writeSync(file, this.#bytes, done, this.#length - done, this.#inputs.length + done);
    } finally {
      closeSync(file);
    }
    held = this.#bytes;
  }

  /** Where in the file the next byte goes. */
  get #end(): number {
    return this.#inputs.length + this.#length;
  }

  #add(text: string): void {
    const more = Buffer.byteLength(text);
    this.#hold(more);
    this.#length += this.#bytes.write(text, this.#length, more, "utf8");
  }

  #hold(more: number): void {
    const wanted = this.#length + more;
    if (this.#inputs.length + wanted > PACK_MAX) throw new Error("too many readings for one pack");
    if (wanted <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(wanted, HELD_FIRST, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
