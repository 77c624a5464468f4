/**
 * The bytes of a block of points: dates by their step or by how it changes, values as scaled whole numbers or as
 * doubles, their bytes in planes, and runs of equal origins; compressed by Zstandard where that gains anything. Before
 * these there are the sums of the values, and a checksum that each read verifies. The doubles come back bit by bit.
 */
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { type BlockSums, sumsOf } from "./sums.ts";

/** The bytes of a block are not those that were written. */
export class DamagedBlock extends RangeError {}

/** Points in strictly ascending order of date. */
export interface Columns {
  readonly atMs: Float64Array;
  readonly values: Float64Array;
  readonly origins: Float64Array;
}

/** Empty columns in one piece of memory, since each piece costs as much as 50 points. */
export function columnsFor(count: number): Columns {
  const { buffer } = new Float64Array(3 * count);
  const column = (index: number) => new Float64Array(buffer, 8 * index * count, count);
  return { atMs: column(0), values: column(1), origins: column(2) };
}

export function sliced(columns: Columns, from: number, end: number): Columns {
  const { atMs, values, origins } = columns;
  if (from === 0 && end === atMs.length) return columns;
  return { atMs: atMs.subarray(from, end), values: values.subarray(from, end), origins: origins.subarray(from, end) };
}

const FORMAT = 1;
const SCALES = [1, 10, 100, 1e3, 1e4, 1e5, 1e6] as const;
const DOUBLES = 255;
/** Scaled values beyond it are kept as doubles. */
const WHOLE_MAX = 2 ** 45;
/** Dates of one block are not farther apart, so that sums of their steps are exact. */
export const SPAN_MAX_MS = 2 ** 50;
/** Bytes of a point at most: a date, a double, a run of an origin. */
const POINT_BYTES = 8 + 8 + 18;
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Fewer points, whose block mostly grows, are not compressed: that costs as much as all the rest. */
const COMPRESSED_MIN = 500;
/** Of what was compressed; where it is more, reading it as it is costs half. */
const WORTH_COMPRESSING = 0.8;

/** The first byte. */
const [PLAIN, COMPRESSED] = [1, 2];
/** The first byte, the checksum of all that follows it, and four doubles. */
const SUM_PLACE = 1 + 4;
const HEAD_BYTES = SUM_PLACE + 4 * 8;

export function packed(columns: Columns): Uint8Array {
  const count = columns.atMs.length;
  const bytes = writerFor(64 + count * POINT_BYTES);
  bytes.byte(FORMAT);
  bytes.natural(count);
  packDates(bytes, columns.atMs);
  packValues(bytes, columns.values);
  packOrigins(bytes, columns.origins);
  const plain = bytes.written();
  if (count < COMPRESSED_MIN) return headed(PLAIN, plain, columns.values);
  const compressed = zstdCompressSync(plain, FAST);
  return compressed.length < WORTH_COMPRESSING * plain.length
    ? headed(COMPRESSED, compressed, columns.values)
    : headed(PLAIN, plain, columns.values);
}

/** Kept for the next block. */
let writer = new ByteWriter(65_536);

function writerFor(capacity: number): ByteWriter {
  if (capacity > writer.capacity) writer = new ByteWriter(capacity);
  writer.clear();
  return writer;
}

function headed(kind: number, content: Uint8Array, values: Float64Array): Uint8Array {
  const data = Buffer.allocUnsafe(HEAD_BYTES + content.length);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const sums = sumsOf(values);
  const fields = [sums?.sum, sums?.error, sums?.min, sums?.max];
  for (const [index, field] of fields.entries()) view.setFloat64(SUM_PLACE + 8 * index, field ?? Number.NaN, true);
  data.set(content, HEAD_BYTES);
  data[0] = kind;
  view.setUint32(1, crc32(data.subarray(SUM_PLACE)), true);
  return data;
}

/** Null: one of the values is too large. */
export function sumsIn(data: Uint8Array): BlockSums | null {
  const view = verified(data);
  const field = (index: number) => view.getFloat64(SUM_PLACE + 8 * index, true);
  const [sum, error, min, max] = [field(0), field(1), field(2), field(3)];
  return Number.isNaN(sum) ? null : { sum, error, min, max };
}

function verified(data: Uint8Array): DataView {
  if (data.length < HEAD_BYTES) throw new DamagedBlock("a block of points is cut off");
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (view.getUint32(1, true) !== crc32(data.subarray(SUM_PLACE)))
    throw new DamagedBlock("a block of points is damaged");
  return view;
}

function contentOf(data: Uint8Array): Uint8Array {
  verified(data);
  const content = data.subarray(HEAD_BYTES);
  if (data[0] === PLAIN) return content;
  if (data[0] === COMPRESSED) return decompressed(content);
  throw new DamagedBlock(`a block of points has the unknown kind ${data[0]}`);
}

function decompressed(content: Uint8Array): Uint8Array {
  try {
    return zstdDecompressSync(content);
  } catch (thrown) {
    throw new DamagedBlock("a block of points cannot be decompressed", { cause: thrown });
  }
}

/** Null: the bytes are damaged. */
export function readable(data: Uint8Array): Columns | null {
  try {
    return unpacked(data);
  } catch (thrown) {
    if (thrown instanceof DamagedBlock) return null;
    throw thrown;
  }
}

export function unpacked(data: Uint8Array): Columns {
  const bytes = new ByteReader(contentOf(data));
  const format = bytes.byte();
  if (format !== FORMAT) throw new DamagedBlock(`a block of points has the unknown format ${format}`);
  const count = bytes.natural();
  const columns = columnsFor(count);
  unpackDates(bytes, columns.atMs);
  unpackValues(bytes, columns.values);
  unpackOrigins(bytes, columns.origins);
  return columns;
}

function packDates(bytes: ByteWriter, atMs: Float64Array): void {
  const first = atMs[0] ?? 0;
  const step = (atMs[1] ?? first) - first;
  bytes.double(first);
  bytes.double(step);
  let regular = 0;
  while (regular < atMs.length && atMs[regular] === first + regular * step) regular += 1;
  const isRegular = regular === atMs.length;
  bytes.byte(isRegular ? 1 : 0);
  if (isRegular) return;
  for (let index = 2, before = step; index < atMs.length; index += 1) {
    const next = (atMs[index] ?? 0) - (atMs[index - 1] ?? 0);
    bytes.whole(next - before);
    before = next;
  }
}

function unpackDates(bytes: ByteReader, atMs: Float64Array): void {
  const first = bytes.double();
  const step = bytes.double();
  const isRegular = bytes.byte() === 1;
  for (let index = 0, ms = first, next = step; index < atMs.length; index += 1) {
    if (index > 1 && !isRegular) next += bytes.whole();
    if (index > 0) ms += next;
    atMs[index] = ms;
  }
}

function packValues(bytes: ByteWriter, values: Float64Array): void {
  const scaled = scaledOf(values);
  if (scaled === null) {
    bytes.byte(DOUBLES);
    bytes.planes(new Uint8Array(values.slice().buffer), 8);
    return;
  }
  const { scale, whole } = scaled;
  bytes.byte(scale);
  const steps = stepsOf(whole);
  const [plain, changes] = [rangeOf(whole), rangeOf(steps)];
  const isBySteps = changes.width < plain.width;
  const { low, width } = isBySteps ? changes : plain;
  bytes.byte(isBySteps ? 1 : 0);
  bytes.byte(width);
  bytes.double(low);
  bytes.double(whole[0] ?? 0);
  bytes.wholePlanes(isBySteps ? steps : whole, low, width);
}

/** From the second one on. */
function stepsOf(whole: Float64Array): Float64Array {
  const steps = scratch(1, Math.max(0, whole.length - 1));
  for (let index = 0; index < steps.length; index += 1) steps[index] = (whole[index + 1] ?? 0) - (whole[index] ?? 0);
  return steps;
}

function unpackValues(bytes: ByteReader, values: Float64Array): void {
  const scale = bytes.byte();
  if (scale === DOUBLES) {
    values.set(new Float64Array(bytes.planes(values.length, 8).buffer));
    return;
  }
  const divisor = SCALES[scale] ?? 1;
  const isBySteps = bytes.byte() === 1;
  const width = bytes.byte();
  const low = bytes.double();
  const first = bytes.double();
  if (!isBySteps) {
    bytes.wholePlanes(values, low, width);
    for (let index = 0; index < values.length; index += 1) values[index] = (values[index] ?? 0) / divisor;
    return;
  }
  bytes.wholePlanes(values.subarray(1), low, width);
  for (let index = 0, whole = first; index < values.length; index += 1) {
    if (index > 0) whole += values[index] ?? 0;
    values[index] = whole / divisor;
  }
}

const scratches = [new Float64Array(2_048), new Float64Array(2_048)];

/** Valid until the next block. */
function scratch(place: 0 | 1, length: number): Float64Array {
  const known = scratches[place];
  return known !== undefined && length <= known.length ? known.subarray(0, length) : new Float64Array(length);
}

interface Scaled {
  readonly scale: number;
  readonly whole: Float64Array;
}

/** The values by the smallest scale by which all are whole numbers; null: there is none. */
function scaledOf(values: Float64Array): Scaled | null {
  const whole = scratch(0, values.length);
  let scale = 0;
  for (let index = 0; index < values.length; ) {
    const value = values[index] ?? 0;
    const factor = SCALES[scale] ?? 1;
    const one = Math.round(value * factor);
    // Sums of whole numbers have no negative zero.
    if (Math.abs(one) < WHOLE_MAX && one / factor === value && !Object.is(value, -0)) {
      whole[index] = one;
      index += 1;
      continue;
    }
    scale += 1;
    if (scale === SCALES.length) return null;
    index = 0;
  }
  return { scale, whole };
}

function rangeOf(whole: Float64Array): { readonly low: number; readonly width: number } {
  let low = whole[0] ?? 0;
  let high = low;
  for (let index = 1; index < whole.length; index += 1) {
    const value = whole[index] ?? 0;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  let width = 0;
  for (let left = high - low; left > 0; left = Math.floor(left / 256)) width += 1;
  return { low, width };
}

function packOrigins(bytes: ByteWriter, origins: Float64Array): void {
  let before = 0;
  for (let index = 0; index < origins.length; ) {
    const origin = origins[index] ?? 0;
    let end = index + 1;
    while (end < origins.length && origins[end] === origin) end += 1;
    bytes.natural(end - index);
    bytes.whole(origin - before);
    before = origin;
    index = end;
  }
}

function unpackOrigins(bytes: ByteReader, origins: Float64Array): void {
  for (let index = 0, origin = 0; index < origins.length; ) {
    const end = index + bytes.natural();
    origin += bytes.whole();
    origins.fill(origin, index, end);
    index = end;
  }
}
