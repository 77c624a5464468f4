/** The words of a search, as the index of each database has them. */
import { UNITS } from "#wire/index.ts";
import type { SearchWord } from "../store/search/search.ts";

const WORDS_MAX = 10;
/** As in the index of PostgreSQL. */
const CHARACTERS_MAX = 60;

/** Empty when nothing can be found. */
export function wordsOf(text: string): readonly SearchWord[] {
  const words = text.trim().split(/\s+/).slice(0, WORDS_MAX);
  return words.flatMap((word): SearchWord[] => {
    const tokens = tokensOf(word);
    const unitIds = unitsOf(word);
    return tokens.length === 0 && unitIds.length === 0 ? [] : [{ tokens, unitIds }];
  });
}

/** Without case and accents, cut at whatever is no letter or digit: safe in the question of either database. */
function tokensOf(word: string): readonly string[] {
  const plain = word.normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const tokens = plain
    .toLowerCase()
    .normalize("NFC")
    .split(/[^\p{L}\p{N}]+/u);
  return tokens.filter((token) => token !== "").map((token) => token.slice(0, CHARACTERS_MAX));
}

/** Units by their symbol or name, whatever the case: a person who searches `kwh` means kWh. */
function unitsOf(word: string): readonly number[] {
  const folded = word.normalize("NFKC").toLowerCase();
  return UNITS.filter(({ symbol, name }) =>
    [symbol, name].some((one) => one.normalize("NFKC").toLowerCase() === folded),
  ).map(({ id }) => id);
}
