/** Writes and reads the numbers of a block. */

export class ByteWriter {
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

export class ByteReader {
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
