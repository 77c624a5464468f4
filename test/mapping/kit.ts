/** Files and jobs for the tests of mapping. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import { afterEach } from "vitest";
import type { BatchLimits, PushElement } from "#gateway/model.ts";
import type { LookupFile, MapResult } from "#mapping/contract.ts";
import { mapFile } from "#mapping/map-file.ts";
import { defineMapper, type MapContext } from "#mapping/mapper.ts";
import { createMapperFile } from "#mapping/readers/mapper-file.ts";
import type { RowFault } from "#mapping/readers/row-error.ts";
import { RowTracker } from "#mapping/readers/row-place.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import type { BatchSink } from "#mapping/segment/writer.ts";

const made: string[] = [];

afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true });
});

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  made.push(folder);
  return folder;
}

export async function inputFile(content: string | Uint8Array, name = "input.csv"): Promise<string> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, content);
  return path;
}

export interface Refused {
  readonly row: object;
  readonly fault: RowFault;
}

/** The readers of a file, and the rows that they refused. */
export async function openFile(content: string | Uint8Array, name?: string) {
  const inputPath = await inputFile(content, name);
  const refused: Refused[] = [];
  const tracker = new RowTracker();
  const file = createMapperFile(
    { inputPath, fileName: name ?? "input.csv", filePath: name ?? "input.csv", size: content.length },
    tracker,
    (row, fault) => refused.push({ row, fault }),
    new AbortController().signal,
  );
  return { file, refused, tracker };
}

export async function collect<Row>(chunks: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const chunk of chunks) rows.push(...chunk);
  return rows;
}

export const WIDE: BatchLimits = { pointsMax: 1_000_000, bytesMax: 100_000_000 };

export interface Mapped {
  readonly result: MapResult;
  readonly bodies: readonly Buffer[];
  readonly elements: readonly PushElement[];
}

/** Maps an input by a `map` written in the test. */
export async function mapWith(
  map: (context: MapContext<unknown>) => void | Promise<void>,
  options: {
    readonly content?: string;
    readonly rows?: "strict" | "lenient";
    readonly rejectShare?: number;
    readonly limits?: BatchLimits;
    readonly sink?: BatchSink;
    readonly rowsInMemoryMax?: number;
    readonly lookups?: readonly LookupFile[];
    readonly settings?: Readonly<Record<string, unknown>>;
    readonly log?: MapContext<unknown>["log"];
  } = {},
): Promise<Mapped> {
  const memory = createMemorySink();
  const result = await mapFile({
    inputPath: await inputFile(options.content ?? ""),
    fileName: "input.csv",
    filePath: "in/input.csv",
    mapper: defineMapper({ name: "test", summary: "of a test", map }),
    settings: options.settings ?? {},
    ...(options.log === undefined ? {} : { log: options.log }),
    rows: options.rows ?? "strict",
    rejectShare: options.rejectShare,
    limits: options.limits ?? WIDE,
    sink: options.sink ?? memory,
    lookups: options.lookups,
    signal: new AbortController().signal,
    rowsInMemoryMax: options.rowsInMemoryMax,
  });
  const elements = memory.bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as PushElement[]);
  return { result, bodies: memory.bodies, elements };
}

/** A ZIP archive of texts; stored, unless they are to be deflated. */
export function zipOf(parts: Readonly<Record<string, string>>, deflated = false): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(parts)) {
    const unpacked = Buffer.from(text);
    const body = deflated ? deflateRawSync(unpacked) : unpacked;
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(deflated ? 8 : 0, 4);
    shared.writeUInt32LE(crc32(unpacked), 10);
    shared.writeUInt32LE(body.length, 14);
    shared.writeUInt32LE(unpacked.length, 18);
    shared.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), shared, Buffer.from(name), body]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\u0000"), shared, tail, Buffer.from(name)]));
    bodies.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", 0, "latin1");
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, central, end]);
}
