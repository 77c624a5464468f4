/** The tokenizer of @streamparser/json, extended by numbers that keep all their digits. */
import { Tokenizer } from "@streamparser/json";

export { type ParsedTokenInfo, TokenType } from "@streamparser/json";

/** A double represents every whole number of so many digits exactly. */
const SAFE_DIGITS = 15;
/** Longest number; doubles have at most 309 digits before the point. */
const DIGITS_MAX = 400;

/** Texts and numbers are collected as bytes: a long one would otherwise be an array of its characters. */
const BUFFERS = { stringBufferSize: 4096, numberBufferSize: 512 };

export class JsonTokenizer extends Tokenizer {
  constructor() {
    super(BUFFERS);
  }

  /**
   * Returns infinity for a number beyond doubles. Whole numbers that a double cannot represent exactly become
   * bigint, which the types of the library do not foresee.
   */
  protected override parseNumber(text: string): number {
    const number = Number(text);
    if (text.length > DIGITS_MAX) return Number.POSITIVE_INFINITY;
    if (text.length <= SAFE_DIGITS || !/^-?\d+$/.test(text) || String(number) === text) return number;
    if (!Number.isFinite(number)) return number;
    return BigInt(text) as unknown as number;
  }
}
