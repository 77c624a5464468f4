/**
 * LIKE of texts for SQLite, whose own tries a pattern at each character of a text and so takes the product of both
 * lengths. Each part between two `%` is sought once, from left to right.
 */

type LikePattern = (text: string) => boolean;

/** An element of a part: a code point, or any (`_`). */
const ANY = -1;
const WORD_BITS = 32;

/** As SQL's LIKE with `ESCAPE '\'`, where case counts. */
export function likePattern(pattern: string): LikePattern {
  const parts = partsOf(pattern);
  const [first = [], ...others] = parts;
  const last = others.pop();
  const least = parts.reduce((sum, part) => sum + part.length, 0);
  const between = others.filter((part) => part.length > 0).map(searchOf);
  return (text) => {
    const points = pointsOf(text);
    if (points.length < least || !isAt(first, points, 0)) return false;
    if (last === undefined) return points.length === first.length;
    const end = points.length - last.length;
    let from = first.length;
    for (const search of between) {
      const found = search(points, from, end);
      if (found === null) return false;
      from = found;
    }
    return from <= end && isAt(last, points, end);
  };
}

/** Cut at each `%`. */
function partsOf(pattern: string): number[][] {
  const parts: number[][] = [[]];
  let isEscaped = false;
  for (const point of pointsOf(pattern)) {
    const sign: string = isEscaped ? "" : String.fromCodePoint(point);
    isEscaped = sign === "\\";
    if (sign === "%") parts.push([]);
    else if (!isEscaped) parts.at(-1)?.push(sign === "_" ? ANY : point);
  }
  return parts;
}

function pointsOf(text: string): Uint32Array {
  const points = new Uint32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; count += 1) {
    const point = text.codePointAt(at) ?? 0;
    points[count] = point;
    at += point > 0xffff ? 2 : 1;
  }
  return points.subarray(0, count);
}

function isAt(part: readonly number[], points: Uint32Array, from: number): boolean {
  if (from < 0 || from + part.length > points.length) return false;
  return part.every((one, at) => one === ANY || one === points[from + at]);
}

/** The end of the first occurrence from a place on, at most at another. */
type Search = (points: Uint32Array, from: number, end: number) => number | null;

/**
 * Shift-And: bit k says that the text until here ends with the first k + 1 elements of the part. A step takes a word of
 * bits for 32 elements, whatever the text.
 */
function searchOf(part: readonly number[]): Search {
  const words = Math.ceil(part.length / WORD_BITS);
  const fits = new Map<number, Uint32Array>();
  const any = new Uint32Array(words);
  for (const [at, one] of part.entries()) if (one === ANY) set(any, at);
  for (const [at, one] of part.entries())
    if (one !== ANY)
      set(
        fits.getOrInsertComputed(one, () => any.slice()),
        at,
      );
  const lastWord = words - 1;
  const lastBit = 1 << ((part.length - 1) % WORD_BITS);
  return (points, from, end) => {
    const begun = new Uint32Array(words);
    for (let at = from; at < end; at += 1) {
      const fit = fits.get(points[at] ?? 0) ?? any;
      // A part may begin at each character.
      let carried = 1;
      for (let word = 0; word < words; word += 1) {
        const before = begun[word] ?? 0;
        begun[word] = ((before << 1) | carried) & (fit[word] ?? 0);
        carried = before >>> (WORD_BITS - 1);
      }
      if (((begun[lastWord] ?? 0) & lastBit) !== 0) return at + 1;
    }
    return null;
  };
}

function set(bits: Uint32Array, at: number): void {
  const word = Math.floor(at / WORD_BITS);
  bits[word] = (bits[word] ?? 0) | (1 << (at % WORD_BITS));
}
