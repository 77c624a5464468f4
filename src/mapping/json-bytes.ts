/** JSON written as bytes, since a string for each reading would cost more than the reading. */

const ROOM_FIRST = 64 * 1024;
/** Size limit of a date and a number, with the names of their fields. */
const READING_BYTES_MAX = 128;
const DAY_MS = 86_400_000;
const [ZERO, COLON, POINT, MINUS, ZULU] = [48, 58, 46, 45, 90];
const DECIMALS_SCALE = 1e6;
const DIGITS_EXACT_BELOW = 1e15;

const DATE_FIELD = Buffer.from('{"date":"');
const VALUE_FIELD = Buffer.from('","value":');

export class JsonBytes {
  #bytes = Buffer.allocUnsafeSlow(ROOM_FIRST);
  length = 0;
  #day = Number.NaN;
  /** `{"date":"2026-03-01T` for the latest day: consecutive readings share a day. */
  #dayBytes = new Uint8Array(0);

  /** Capacity in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** The bytes written so far. The memory is reused after `length` was set back. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  text(text: string, bytes: number): void {
    this.#reserve(bytes);
    this.#bytes.write(text, this.length, bytes, "utf8");
    this.length += bytes;
  }

  /** `{"date":"2026-03-01T00:15:00Z","value":1.5`, with milliseconds only when they are not zero. */
  reading(epochMs: number, value: number): void {
    this.#reserve(READING_BYTES_MAX);
    this.#date(epochMs);
    this.#copy(VALUE_FIELD);
    this.#number(value);
  }

  /** Writes as `String(value)` does; most values have few decimals, and a fast path finds their digits. */
  #number(value: number): void {
    const scaled = Math.round(value * DECIMALS_SCALE);
    // Up to 15 digits identify a number, so these are the shortest digits of this value.
    if (scaled / DECIMALS_SCALE !== value || scaled >= DIGITS_EXACT_BELOW || scaled <= -DIGITS_EXACT_BELOW) {
      this.#ascii(String(value));
      return;
    }
    if (scaled < 0) this.#bytes[this.length++] = MINUS;
    const whole = Math.floor(Math.abs(scaled) / DECIMALS_SCALE);
    this.#digits(whole, 1);
    let decimals = Math.abs(scaled) - whole * DECIMALS_SCALE;
    if (decimals === 0) return;
    let places = 6;
    while (decimals % 10 === 0) {
      decimals /= 10;
      places -= 1;
    }
    this.#bytes[this.length++] = POINT;
    this.#digits(decimals, places);
  }

  /** Digits of a whole number, with leading zeros up to the given number of places. */
  #digits(number: number, places: number): void {
    let count = 1;
    for (let limit = 10; limit <= number; limit *= 10) count += 1;
    const end = this.length + Math.max(count, places);
    let rest = number;
    for (let at = end - 1; at >= this.length; at -= 1) {
      const tens = Math.floor(rest / 10);
      this.#bytes[at] = ZERO + rest - tens * 10;
      rest = tens;
    }
    this.length = end;
  }

  #date(epochMs: number): void {
    const day = Math.floor(epochMs / DAY_MS);
    if (day !== this.#day) {
      const text = new Date(day * DAY_MS).toISOString().slice(0, 11);
      this.#dayBytes = Buffer.concat([DATE_FIELD, Buffer.from(text)]);
      this.#day = day;
    }
    this.#copy(this.#dayBytes);
    const rest = epochMs - day * DAY_MS;
    const seconds = Math.floor(rest / 1000);
    const ms = rest - seconds * 1000;
    this.#two(Math.floor(seconds / 3600));
    this.#bytes[this.length++] = COLON;
    this.#two(Math.floor(seconds / 60) % 60);
    this.#bytes[this.length++] = COLON;
    this.#two(seconds % 60);
    if (ms !== 0) {
      this.#bytes[this.length++] = POINT;
      this.#bytes[this.length++] = ZERO + Math.floor(ms / 100);
      this.#two(ms % 100);
    }
    this.#bytes[this.length++] = ZULU;
  }

  #two(number: number): void {
    const tens = Math.floor(number / 10);
    this.#bytes[this.length++] = ZERO + tens;
    this.#bytes[this.length++] = ZERO + number - tens * 10;
  }

  #copy(from: Uint8Array): void {
    const bytes = this.#bytes;
    let to = this.length;
    for (let at = 0; at < from.length; at += 1) bytes[to++] = from[at] ?? 0;
    this.length = to;
  }

  #ascii(text: string): void {
    const bytes = this.#bytes;
    let to = this.length;
    for (let at = 0; at < text.length; at += 1) bytes[to++] = text.charCodeAt(at);
    this.length = to;
  }

  #reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.written.copy(larger);
    this.#bytes = larger;
  }
}
