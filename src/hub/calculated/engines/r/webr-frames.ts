/** The words between the hub and a process of webR: a kind (answers alone), the number of bytes, the bytes. */
import type { RuntimeLimits } from "./webr-module.ts";

export interface WorkerStart {
  /** Folder of webR's files. */
  readonly folder: string;
  readonly limits: RuntimeLimits;
}

export const ANSWERS = { ready: 0, result: 1, lastResult: 2, crash: 3 } as const;

/** Inputs have no kind. */
export const INPUT = 0;

/** Descriptor of a channel without words: it closes when the thread that started the process is gone. */
export const LIFELINE = 3;

const HEAD_BYTES = 5;

export interface Frame {
  readonly kind: number;
  readonly body: Buffer;
}

export function headOf(kind: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(kind);
  head.writeUInt32LE(body.length, 1);
  return head;
}

/** Puts frames together; the other side sends one at a time. */
export class FrameReader {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #wanted = HEAD_BYTES;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The frame that is whole with `chunk`; null before. Throws when there are more bytes than one frame may have. */
  next(chunk: Buffer): Frame | null {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#wanted) return null;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    this.#wanted = HEAD_BYTES + all.readUInt32LE(1);
    if (Math.max(this.#wanted, all.length) > this.#bytesMax + HEAD_BYTES) throw new RangeError("a frame is too long");
    if (all.length < this.#wanted) return null;
    const rest = all.subarray(this.#wanted);
    const frame = { kind: all.readUInt8(), body: all.subarray(HEAD_BYTES, this.#wanted) };
    if (rest.length > 0) throw new RangeError("more bytes than one frame");
    this.#chunks = [];
    this.#bytes = 0;
    this.#wanted = HEAD_BYTES;
    return frame;
  }
}
