/**
 * The bytes of a block of points: dates by their step or by how it changes, values as scaled whole numbers or as
 * doubles, their bytes in planes, and runs of equal origins; compressed by Zstandard where that gains anything. Before
 * these there are the sums of the values, and a checksum that each read verifies. The doubles come back bit by bit.
 */
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from "node:zlib";

/** Sums of larger values may have no double. */
const VALUE_MAX = 1e150;

class ByteWriter {
  readonly capacity: number;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private at = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  clear(): void {
    this.at = 0;
  }

  /** Valid until `clear`. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  byte(value: number): void {
    this.bytes[this.at] = value;
    this.at += 1;
  }

  double(value: number): void {
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  /** Seven bits a byte, least significant first. */
  natural(value: number): void {
    let left = value;
    for (; left >= 128; left = Math.floor(left / 128)) this.byte((left % 128) + 128);
    this.byte(left);
  }

  whole(value: number): void {
    this.natural(value < 0 ? -2 * value - 1 : 2 * value);
  }

  /** Bytes of values of that width, all first bytes before all second ones. */
  planes(values: Uint8Array, width: number): void {
    for (let plane = 0; plane < width; plane += 1)
      for (let index = plane; index < values.length; index += width) this.byte(values[index] ?? 0);
  }

  /** The bytes of the distances of whole numbers from the lowest one. */
  wholePlanes(values: Float64Array, low: number, width: number): void {
    const { bytes } = this;
    let { at } = this;
    // As 32 bits in the first planes, which is a third of the cost.
    for (let plane = 0; plane < Math.min(width, 4); plane += 1)
      for (let index = 0; index < values.length; index += 1, at += 1)
        bytes[at] = ((values[index] ?? 0) - low) >>> (8 * plane);
    for (let plane = 4, unit = 2 ** 32; plane < width; plane += 1, unit *= 256)
      for (let index = 0; index < values.length; index += 1, at += 1)
        bytes[at] = Math.floor(((values[index] ?? 0) - low) / unit);
    this.at = at;
  }
}

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

// Writes and reads the numbers of a block.

class ByteReader {
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  byte(): number {
    const value = this.view.getUint8(this.at);
    this.at += 1;
    return value;
  }

  double(): number {
    this.at += 8;
    return this.view.getFloat64(this.at - 8, true);
  }

  natural(): number {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const next = this.byte();
      value += (next % 128) * unit;
      if (next < 128) return value;
    }
  }

  whole(): number {
    const value = this.natural();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  planes(count: number, width: number): Uint8Array {
    const values = new Uint8Array(count * width);
    for (let plane = 0; plane < width; plane += 1)
      for (let index = plane; index < values.length; index += width) values[index] = this.byte();
    return values;
  }

  /** Fills `values`. */
  wholePlanes(values: Float64Array, low: number, width: number): void {
    values.fill(low);
    const { bytes } = this;
    for (let plane = 0, unit = 1; plane < width; plane += 1, unit *= 256)
      for (let index = 0; index < values.length; index += 1, this.at += 1)
        values[index] = (values[index] ?? 0) + (bytes[this.at] ?? 0) * unit;
  }
}

// Aggregates of the values of a block, so that a read of periods that hold all of it needs none of its points.

/** As `PeriodSums` in `src/hub/data/buckets.ts`. */
export interface BlockSums {
  /** The sum is `sum` + `error`. */
  readonly sum: number;
  readonly error: number;
  readonly min: number;
  readonly max: number;
}

/** Additions lose nothing that they round off (the method of Neumaier). Null: a value is too large. */
function sumsOf(values: Float64Array): BlockSums | null {
  let sum = 0;
  let error = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    const next = sum + value;
    error += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min < -VALUE_MAX || max > VALUE_MAX ? null : { sum, error, min, max };
}
