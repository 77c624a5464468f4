/** Reads the readings in the batches of a run; and sets of readings on the disk, since a file may have any number. */
import { hash } from "node:crypto";
import { rm } from "node:fs/promises";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Readable } from "node:stream";
import type { BatchSlice, PushElement, PushReading, PushTarget } from "../model.ts";
import type { Span } from "./layout.ts";

/** A reading with what identifies its variable. */
export interface PayloadReading {
  /** JSON of the identification; equal for equal targets. */
  readonly target: string;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: number;
  /** Empty when it has none. */
  readonly version: string;
  readonly value: number;
}

export function parseBody(body: Buffer): readonly PushElement[] {
  return JSON.parse(body.toString("utf8")) as readonly PushElement[];
}

/** Fields in the order of their names, whichever way they were written. */
export function targetOf(element: PushTarget | PushElement | Readonly<Record<string, string | number>>): string {
  const { data: _data, tags: _tags, version: _version, ...target } = element as PushElement;
  return JSON.stringify(Object.fromEntries(Object.entries(target).sort(([a], [b]) => (a < b ? -1 : 1))));
}

export function readingOf(element: PushElement, target: string, reading: PushReading): PayloadReading {
  return {
    target,
    atMs: Date.parse(reading.date),
    version: reading.version ?? element.version ?? "",
    value: reading.value,
  };
}

export function readingsOf(elements: readonly PushElement[]): readonly PayloadReading[] {
  return elements.flatMap((element) => {
    const target = targetOf(element);
    return element.data.map((reading) => readingOf(element, target, reading));
  });
}

/** Bytes of a part of a segment. */
export type SegmentRead = (span: Span) => Readable;

/**
 * The bodies of slices of a segment, in the order of their offsets; bodies with another digest than the ledger has are
 * left out. Another node may have made a segment with other offsets, and here the body of another run may be in the
 * place. Memory holds one body, and only the part of the file with the slices is read.
 */
export async function* bodiesOf(
  read: SegmentRead,
  slices: readonly BatchSlice[],
): AsyncGenerator<{ readonly slice: BatchSlice; readonly body: Buffer }> {
  const ordered = slices.toSorted((a, b) => a.offset - b.offset);
  const [first, last] = [ordered[0], ordered.at(-1)];
  if (first === undefined || last === undefined) return;
  const bytes = new Bytes(read({ offset: first.offset, length: last.offset + last.length - first.offset }));
  let at = first.offset;
  try {
    for (const slice of ordered) {
      await bytes.skip(slice.offset - at);
      const body = await bytes.take(slice.length);
      if (body.length < slice.length) return;
      at = slice.offset + slice.length;
      if (hash("sha256", body) === slice.digest) yield { slice, body };
    }
  } finally {
    bytes.close();
  }
}

/** Takes a stream in pieces of known lengths. */
export class Bytes {
  readonly #source: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: Readable) {
    this.#source = source;
    this.#chunks = (source as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Fewer at the end of the stream. */
  async take(length: number): Promise<Buffer> {
    const parts = [this.#held];
    let total = this.#held.length;
    while (total < length) {
      const next = await this.#chunks.next();
      if (next.done === true) break;
      parts.push(next.value);
      total += next.value.length;
    }
    const all = Buffer.concat(parts);
    this.#held = all.subarray(length);
    return all.subarray(0, length);
  }

  async skip(length: number): Promise<void> {
    let left = length;
    while (left > this.#held.length) {
      left -= this.#held.length;
      const next = await this.#chunks.next();
      if (next.done === true) {
        this.#held = Buffer.alloc(0);
        return;
      }
      this.#held = next.value;
    }
    this.#held = this.#held.subarray(left);
  }

  close(): void {
    this.#source.destroy();
  }
}

/** Readings of a payload, by target, date and version. */
export class ReadingSet {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #insert: StatementSync;
  readonly #value: StatementSync;
  readonly #dated: StatementSync;

  /** Takes the path for a file of its own. */
  constructor(path: string) {
    this.#path = path;
    this.#db = new DatabaseSync(path);
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; DROP TABLE IF EXISTS readings;
      CREATE TABLE readings (target TEXT, at INTEGER, version TEXT, value REAL, run TEXT,
        PRIMARY KEY (target, at, version)) WITHOUT ROWID`);
    this.#insert = this.#db.prepare("INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?)");
    this.#value = this.#db.prepare("SELECT value FROM readings WHERE target = ? AND at = ? AND version = ?");
    this.#dated = this.#db.prepare("SELECT run FROM readings WHERE target = ? AND at = ? LIMIT 1");
  }

  add(readings: readonly PayloadReading[], run: string): void {
    this.#db.exec("BEGIN");
    for (const { target, atMs, version, value } of readings) this.#insert.run(target, atMs, version, value, run);
    this.#db.exec("COMMIT");
  }

  /** Undefined when it is not in the set. */
  valueOf({ target, atMs, version }: PayloadReading): number | undefined {
    return (this.#value.get(target, atMs, version) as { value: number } | undefined)?.value;
  }

  /** The run that has a reading of this target and date, whatever its version; undefined when none has. */
  runOf({ target, atMs }: Pick<PayloadReading, "target" | "atMs">): string | undefined {
    return (this.#dated.get(target, atMs) as { run: string } | undefined)?.run;
  }

  remove({ target, atMs, version }: PayloadReading): void {
    this.#db.prepare("DELETE FROM readings WHERE target = ? AND at = ? AND version = ?").run(target, atMs, version);
  }

  get size(): number {
    return (this.#db.prepare("SELECT count(*) AS n FROM readings").get() as { n: number }).n;
  }

  first(count: number): readonly PayloadReading[] {
    return this.#db
      .prepare('SELECT target, at AS "atMs", version, value FROM readings ORDER BY target, at LIMIT ?')
      .all(count) as unknown as readonly PayloadReading[];
  }

  async close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
    await rm(this.#path, { force: true });
  }
}
